"""A deployed network as a folder with a page that runs it, in any browser and without a network connection."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from fedvote.core import Dataset, Task
from fedvote.errors import ConfigError
from fedvote.export import onnx
from fedvote.export.exported import Exported, inputs_of
from fedvote.export.web.browser_runtime import LICENCE, runtime_script
from fedvote.export.web.page_input import page_input
from fedvote.export.web.try_page import GENERATOR, network_in, try_page
from fedvote.network.deployed import Deployed
from fedvote.system.atomic_file import write

PAGE, RUNTIME = "index.html", "runtime.js"


def export_web(
    network: Deployed,
    folder: Path | str,
    int8: Tensor | None = None,
    *,
    data: Dataset | None = None,
    title: str = "A network in the browser",
    facts: Mapping[str, str] | None = None,
    metric: tuple[str, str] | None = None,
    task: Task | None = None,
    runtime: Path | None = None,
) -> Exported:
    """Write a page that runs the network, and ONNX Runtime Web beside it. Check first that it answers like the network.

    `data`: their names, ranges and drawings make the page ask for the right inputs. `title`, `facts`, `metric` (name
    and value): the page's head. `task`: of the outputs, if there are no data to tell it. `runtime`: the package of ONNX
    Runtime Web as a file; without it, npm gets it.
    """
    page, asks, script = _page(Path(folder)), page_input(network, data), runtime_script(runtime)
    with tempfile.TemporaryDirectory() as scratch:
        made = onnx.export_onnx(network, Path(scratch) / "network.onnx", int8, inputs=inputs_of(data))
        content = made.path.read_bytes()
    task = data.task if data else task or ("classification" if len(network.classes) > 1 else "regression")
    text = try_page(network, content, title, asks, task, facts or {}, metric)
    write(page.with_name(RUNTIME), script)
    write(page, text)
    return replace(made, path=page)


def outputs(page: Path | str, x: Tensor) -> NDArray[Any]:
    """The outputs of the network inside a page, by ONNX Runtime."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "network.onnx"
        file.write_bytes(network_in(Path(page).read_text(encoding="utf-8")))
        return onnx.outputs(file, x)


def _page(folder: Path) -> Path:
    """The page's file. Files that are not ours are never overwritten."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, expected a folder for the page: give another name")
    for file, mark in ((folder / PAGE, GENERATOR), (folder / RUNTIME, LICENCE)):
        if file.exists() and mark not in file.read_text(encoding="utf-8", errors="replace"):
            raise ConfigError(f"{file} is another file, which would be lost: give a folder without one")
    return folder / PAGE
