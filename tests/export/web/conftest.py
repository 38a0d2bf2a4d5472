"""Two pages, and a browser that opens them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fedvote
from fedvote import ConfigError
from fedvote.core import Dataset
from fedvote.data import load
from fedvote.export.network_file import load_network
from fedvote.export.web import export_web
from fedvote.export.web.browser_runtime import runtime_script
from fedvote.models import make_model
from fedvote.runs.config import ModelConfig
from tests.browser import chromium
from tests.export.networks import deployed, mlp
from tests.export.web.opened_page import open_page
from tests.export.web.tables import table


@pytest.fixture(scope="package")
def data() -> Dataset:
    return load("digits")


@pytest.fixture(scope="package")
def runtime() -> str:
    """ONNX Runtime Web, from the cache or the registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPM_CONFIG_FETCH_RETRIES", "0")
        try:
            return runtime_script()
        except ConfigError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory, data: Dataset, runtime: str) -> dict[str, Path]:
    """A page for digits, trained for a second, and one for a table, with random votes."""
    folder = tmp_path_factory.mktemp("pages")
    run = fedvote.simulate(
        make_model("digits-cnn", data.shape, 10), data, fedvote.FedVote(lr=0.1),
        clients=3, rounds=4, steps=40, batch=32, evaluate_every=4,
    )  # fmt: skip
    file = fedvote.save_network(folder, run.federation, list(run)[-1], ModelConfig("digits-cnn"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedvote.export.web.web_folder.runtime_script", lambda package: runtime)
        made = export_web(load_network(file), folder / "digits", data=data, title="digits")
        network = deployed(mlp(), "ternary", (20,), torch.float32)
        form = export_web(network, folder / "table", data=table(), title="table")
    return {"digits": made.path, "table": form.path}


@pytest.fixture(scope="package")
def browser(tmp_path_factory: pytest.TempPathFactory, pages: dict[str, Path]) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), performance="ALL") as driver:
        yield driver


@pytest.fixture
def opened(browser: Any, pages: dict[str, Path]) -> Any:
    """The digits, opened as a file, with an empty pad."""
    if browser.current_url != pages["digits"].as_uri():
        open_page(browser, pages["digits"].as_uri())
    browser.execute_script("clearPad()")
    return browser
