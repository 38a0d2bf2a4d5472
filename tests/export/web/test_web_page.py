"""A page that runs a network: its runtime is checked and kept, and it asks for the inputs that the network takes."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fedvote import ConfigError, from_arrays
from fedvote.data import load
from fedvote.export.web import export_web, outputs
from fedvote.export.web.layer_votes import MOST, layer_votes
from fedvote.export.web.page_input import page_input
from fedvote.export.web.run_facts import task_of
from fedvote.network.deployed import Deployed
from tests.export.networks import deployed, mlp
from tests.export.web.tables import table


def data_in(page: Path) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(scope="module")
def of_table() -> Deployed:
    return deployed(mlp(), "binary", (20,), torch.float32)


def test_a_page_has_the_network_and_its_columns(of_table: Deployed, package: Path, tmp_path: Path) -> None:
    data = table()
    made = export_web(of_table, tmp_path / "web", data=data, title="<wine>", runtime=package)
    assert made.path == tmp_path / "web" / "index.html" and made.agreement == 1
    assert sorted(file.name for file in made.path.parent.iterdir()) == ["index.html", "runtime.js"]
    with torch.no_grad():
        assert np.allclose(outputs(made.path, data.test.x), of_table(data.test.x), atol=1e-3)
    columns = data_in(made.path)["asks"]["columns"]
    assert columns[0] == {"name": "column 1", "low": 0, "start": 5, "high": 10, "whole": True}
    assert columns[1]["low"] == pytest.approx(float(data.train.x[:, 1].min())) and not columns[1]["whole"]
    text = made.path.read_text()
    assert (
        "<title>fedvote: &lt;wine&gt;</title>" in text
        and "<b>" not in text
        and "http" not in text.replace("http-equiv", "")
    )


def test_a_table_of_named_columns_is_asked_for_by_these_names() -> None:
    class Frame(dict[str, Any]):
        columns = property(lambda self: list(self))

        def to_numpy(self) -> Any:
            return np.stack(list(self.values()), 1)

    frame = Frame(age=np.arange(4.0), height=np.ones(4) / 3 * np.arange(4))
    data = from_arrays(frame, [0, 1, 0, 1], frame, [0, 1, 0, 1])  # type: ignore[arg-type]
    network = Deployed(nn.Linear(2, 2), (), (), ("a", "b"), (2,), torch.float32)
    asked = page_input(network, data)["columns"]
    assert [(each["name"], each["high"], each["whole"]) for each in asked] == [
        ("age", 3, True),
        ("height", pytest.approx(1), False),
    ]


def test_without_data_columns_are_guessed_from_the_scaling() -> None:
    network = Deployed(nn.Linear(2, 2), (5.0, 0.0), (1.0, 2.0), ("a", "b"), (2,), torch.float32)
    asked = page_input(network, None)["columns"]
    assert [(each["low"], each["start"], each["high"]) for each in asked] == [(3, 5, 7), (-4, 0, 4)]


@pytest.mark.parametrize(("shape", "dtype"), [((2, 15), torch.float32), ((4, 8, 8), torch.uint8), ((9,), torch.int64)])
def test_inputs_that_no_page_can_ask_for_are_refused(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    network = Deployed(nn.Identity(), (), (), ("a", "b"), shape, dtype)
    with pytest.raises(ConfigError, match=r"a page can ask for no others; export it as onnx"):
        page_input(network, None)


def test_data_of_another_shape_are_refused(of_table: Deployed) -> None:
    with pytest.raises(ConfigError, match=r"inputs of shape \(1, 8, 8\), expected \(20,\)"):
        page_input(of_table, load("digits"))


def test_every_layer_of_votes_is_there_and_no_layer_of_floats(of_table: Deployed) -> None:
    layers = layer_votes(of_table)
    found = [(layer.name, layer.shape, layer.binary) for layer in layers]
    assert found == [("0", (33, 20, 1, 1), True), ("3", (17, 33, 1, 1), True)]
    weight = of_table.network.get_parameter("0.weight")
    assert layers[0].counts == (int((weight > 0).sum()), 0, int((weight < 0).sum()))
    assert layer_votes(deployed(mlp(), "float", (20,), torch.float32)) == []


def test_the_votes_of_a_large_layer_are_cut_and_of_a_first_layer_are_images() -> None:
    wide = nn.Sequential(nn.Flatten(), nn.Linear(64, MOST // 32, bias=False))
    wide[1].weight.data = torch.ones(MOST // 32, 64)
    (layer,) = layer_votes(Deployed(wide, (), (), ("a", "b"), (1, 8, 8), torch.float32))
    assert layer.shape == (MOST // 64, 1, 8, 8) and layer.outputs == MOST // 32
    assert layer.counts == (MOST * 2, 0, 0) and len(b64decode(layer.votes)) == MOST // 8


@pytest.mark.parametrize("name", ["index.html", "runtime.js"])
def test_another_file_is_never_overwritten(of_table: Deployed, package: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / name).write_text("<h1>mine</h1>")
    with pytest.raises(ConfigError, match=rf"{name} is another file, which would be lost"):
        export_web(of_table, folder, runtime=package)
    assert [file.name for file in folder.iterdir()] == [name] and (folder / name).read_text() == "<h1>mine</h1>"
    with pytest.raises(ConfigError, match="is a file, expected a folder for the page"):
        export_web(of_table, folder / name, runtime=package)


@pytest.mark.parametrize(
    ("evaluation", "task"),
    [({"confusion": [[1]], "by_class": {}}, "classification"), ({"by_class": {}}, "multi-label"), ({}, "regression")],
)
def test_the_evaluation_of_a_run_tells_its_task_where_there_are_no_data(
    evaluation: dict[str, Any], task: str, of_table: Deployed, package: Path, tmp_path: Path
) -> None:
    (tmp_path / "evaluation.json").write_text(json.dumps(evaluation))
    made = export_web(of_table, tmp_path / "web", runtime=package, task=task_of(tmp_path))
    assert data_in(made.path)["task"] == task


def test_a_run_that_has_not_ended_tells_no_task(tmp_path: Path) -> None:
    assert task_of(tmp_path) is None
