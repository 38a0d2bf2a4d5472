"""Equal networks are translated once, and a package stands for ONNX Runtime Web where nobody runs it."""

from __future__ import annotations

import io
import pickle
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from fedvote.data.download import file_digest
from fedvote.export import onnx
from fedvote.export.c import program
from fedvote.export.network_file import Deployed
from fedvote.export.web import browser_runtime
from fedvote.export.web.browser_runtime import MODULE, PACKAGE, PROGRAM


class Content(pickle.Pickler):
    """Writes tensors by their values; torch writes their addresses as well."""

    def reducer_override(self, thing: Any) -> Any:
        return (torch.from_numpy, (thing.detach().numpy(),)) if isinstance(thing, torch.Tensor) else NotImplemented


@pytest.fixture(autouse=True, scope="package")
def _translated_once() -> Iterator[None]:
    """Torch takes a second to translate a network, however small; half of it for its table of operators, anew.

    All that fedvote itself does with a graph is done for every test.
    """
    from onnx import ModelProto
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    graphs: dict[bytes, bytes] = {}
    translate = onnx.translated

    def translated(network: Deployed) -> Any:
        onnx._library("onnxscript")
        key = io.BytesIO()
        try:
            Content(key).dump(network)
        except (AttributeError, pickle.PicklingError):  # a class within a test
            return translate(network)
        if key.getvalue() not in graphs:
            graphs[key.getvalue()] = translate(network).SerializeToString()
        return ModelProto.FromString(graphs[key.getvalue()])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(cache(ONNXRegistry.from_torchlib)))
        for module in (onnx, program):
            patch.setattr(module, "translated", translated)
        yield


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a module and a program of a few bytes, whose digest is the expected one."""
    path = tmp_path / "made" / PACKAGE
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, content in ((MODULE, b"export {};\n//# sourceMappingURL=a.map"), (PROGRAM, b"\0asm"), ("other", b"")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(browser_runtime, "DIGEST", file_digest(path, "sha512:"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return path
