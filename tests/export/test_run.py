"""From a run folder to a file for other programs, by the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from fedvote import ConfigError, Doubt, FedVoteError, load_network
from fedvote.export import exported
from fedvote.export.c.compiled import can_compile
from fedvote.export.export_run import export_run
from fedvote.export.web.run_facts import run_facts
from fedvote.runs.config import read
from fedvote.runs.experiment import dataset
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run

FAST = ["rounds=2", "local.steps=10", "federation.clients=3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    list(run(read("quickstart", FAST), RunFolder(path), device="cpu"))
    return path


def test_a_run_is_exported_beside_its_network_and_judged_as_the_run_judged_it(folder: Path) -> None:
    made, quality = export_run(folder, test=True)
    assert made.path == folder / "network.onnx" and made.votes == 12944
    assert quality["accuracy"] == pytest.approx(RunFolder(folder).metrics()[-1]["accuracy_calibrated"])
    x = dataset("digits").test.x[:50]
    session = onnxruntime.InferenceSession(made.path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"input": x.numpy()})
    with torch.no_grad():
        assert np.allclose(logits, load_network(folder)(x), atol=1e-3)


@pytest.mark.skipif(not can_compile(), reason="there is no C compiler")
def test_c_is_judged_as_well(folder: Path, tmp_path: Path) -> None:
    _, quality = export_run(folder, "c", tmp_path / "network.c", test=True)
    assert quality["accuracy"] == pytest.approx(RunFolder(folder).metrics()[-1]["accuracy_calibrated"])


def test_a_page_is_judged_as_well_and_says_which_run_it_shows(folder: Path, package: Path) -> None:
    made, quality = export_run(folder, "web", test=True, runtime=package)
    accuracy = RunFolder(folder).metrics()[-1]["accuracy_calibrated"]
    assert made.path == folder / "web" / "index.html" and quality["accuracy"] == pytest.approx(accuracy)
    text = made.path.read_text()
    assert "<dd>digits-cnn</dd>" in text and f"<strong>{accuracy:.1%}</strong>" in text and '"height":8.0' in text


def test_a_page_without_data_guesses_how_inputs_look(folder: Path, package: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((folder / "network.safetensors").read_bytes())
    with pytest.warns(
        Doubt, match=r"the page guesses how inputs look, and that outputs are classes, because .* its data are unknown"
    ):
        made, _ = export_run(alone, "web", tmp_path / "page", runtime=package)
    assert "<h1>alone</h1>" in made.path.read_text()
    with pytest.raises(FedVoteError, match="no-such-data"):
        export_run(alone, "web", tmp_path / "page", data="no-such-data", runtime=package)
    with pytest.raises(ConfigError, match="--runtime is for pages, and the format is onnx"):
        export_run(alone, runtime=package)


def test_integers_take_their_ranges_from_the_training_data_of_the_run(folder: Path) -> None:
    made, quality = export_run(folder, int8=True, test=True)
    assert made.path == folder / "network-int8.onnx" and made.agreement and made.agreement >= 0.9
    assert quality["accuracy"] == pytest.approx(RunFolder(folder).metrics()[-1]["accuracy_calibrated"], abs=0.02)


def test_the_network_alone_is_enough_unless_data_are_needed(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "network.safetensors"
    alone.write_bytes((folder / "network.safetensors").read_bytes())
    made, quality = export_run(alone)
    assert made.path == tmp_path / "network.onnx" and not quality
    for int8 in (True, False):
        with pytest.raises(ConfigError, match="is not a run folder, so its data are unknown"):
            export_run(alone, int8=int8, test=not int8)


TOKENS = """\
import torch
from torch import nn
from fedvote import Dataset, Examples

def data():
    x = torch.randint(0, 10, (300, 6), generator=torch.Generator().manual_seed(0)).float()
    y = (x[:, 0] > 4).long()
    return Dataset("tokens", Examples(x[:200], y[:200]), Examples(x[200:], y[200:]), ("low", "high"))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.hidden, self.last = nn.Embedding(10, 8), nn.Linear(48, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.last(self.hidden(self.embedding(x.long()).flatten(1)).relu())

def net(shape, classes):
    return Net()
"""


def test_the_data_of_the_run_try_its_export_if_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokens.py").write_text(TOKENS)
    own = [f"{key}={tmp_path / 'tokens.py'}:{name}" for key, name in (("data", "data"), ("model", "net"))]
    folder = tmp_path / "run"
    list(run(read("quickstart", [*FAST, *own]), RunFolder(folder), device="cpu"))
    assert export_run(folder, trust=True)[0].agreement == 1  # on random tokens
    monkeypatch.setattr(exported, "_random_inputs", lambda *_: iter(()))
    expected = RunFolder(folder).metrics()[-1]["accuracy_calibrated"]
    for int8 in (False, True):
        _, quality = export_run(folder, int8=int8, test=True, trust=True)
        assert quality["accuracy"] == pytest.approx(expected, abs=0.02)
    named = f"{tmp_path / 'tokens.py'}:data"
    assert export_run(folder / "network.safetensors", trust=True, data=named)[0].agreement == 1
    with pytest.raises(FedVoteError, match="with --test on the command line"):
        export_run(folder, trust=True)


def test_a_folder_gets_a_file(folder: Path, tmp_path: Path) -> None:
    made, _ = export_run(folder, out=tmp_path)
    assert made.path == tmp_path / "network.onnx"


@pytest.mark.parametrize(("out", "written"), [("new/one", "new/one/network.onnx"), ("new/two.onnx", "new/two.onnx")])
def test_a_folder_that_does_not_exist_is_made(folder: Path, tmp_path: Path, out: str, written: str) -> None:
    made, _ = export_run(folder, out=tmp_path / out)
    assert made.path == tmp_path / written and made.path.is_file()


def test_the_network_itself_is_never_overwritten(folder: Path) -> None:
    before = (folder / "network.safetensors").read_bytes()
    with pytest.raises(ConfigError, match=r"ends in \.onnx"):
        export_run(folder, out=folder / "network.safetensors")
    assert (folder / "network.safetensors").read_bytes() == before


def test_what_cannot_be_judged_is_not_written(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ConfigError, match="needs a C compiler"):
        export_run(folder, "c", tmp_path / "network.c", test=True)
    assert not list(tmp_path.iterdir())


def test_a_format_that_is_not_there_is_refused_with_those_that_are(folder: Path) -> None:
    with pytest.raises(ConfigError, match="there is no format 'tflite'; known: onnx, c, web"):
        export_run(folder, "tflite")


@pytest.mark.parametrize(("share", "label"), [(0.0, "the test data"), (0.2, "held-out training data")])
def test_a_page_names_the_data_that_judged_the_run(share: float, label: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f"[data]\nname = 'digits'\nvalidation = {share}\n")
    (tmp_path / "metrics.jsonl").write_text('{"round": 1, "accuracy_calibrated": 0.0}\n')
    assert run_facts(tmp_path, trust=False)["metric"] == (f"accuracy on {label}", "0.0%")
