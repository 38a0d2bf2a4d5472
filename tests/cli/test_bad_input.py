"""A mistake is one sentence, exit code 2, and nothing changed on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.cli.command import SMALL, Command, Refusal


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("round=3", "has no key 'round'; known: seed, rounds"),
        ("hostile=3", "did you mean federation.hostile?"),
        ("influence=capped", "did you mean method.influence?"),
        ("local.passes=3", "local has no key 'passes'; known: steps, batch, epochs"),
        ("method.rate=3", "method 'fedvote' has no key 'rate'; known: lr"),
        ("method.optimizer_options.rho=3", "Adam has no option rho; known: amsgrad"),
        ("method=fedsgd", "method 'fedsgd' is not known; known: fedvote, fedavg"),
        ("method.optimizer=LBFGS", "optimizer 'LBFGS' is not one"),
        ("method.votes=many", "votes is 'many', expected one of: binary, ternary"),
        ("method.reputation=fame", "reputation 'fame' is not known; known: uniform, proportional"),
        ("model=resnet", "model 'resnet' is not known; known: digits-cnn, lenet5, mlp, small-cnn, vgg7"),
        ("model=gone.py:net", "gone.py:net': there is no Python file"),
        ('model.keep_float=["head"]', "keep_float names 'head'"),
        ("data=mnist", "there is no dataset 'mnist': choose one of digits"),
        ("data=cifar10", "cifar10 is not complete"),
        ("partition=even", "partition 'even' is not known; known: iid"),
        ("partition=writer", "digits does not name its writers"),
        ("partition.alpha=0", "alpha is 0.0, expected"),
        ("rounds=many", "rounds is 'many', expected a whole number"),
        ("rounds=0", "rounds is 0, expected"),
        ("rounds", "is not of the form a.b=c"),
        ("federation.cohort=12", "cohort is 12, expected 0 (everybody) to 11"),
        ("federation.clients=2000", "too few for 2000 clients"),
        ("local.batch=1", "batch is 1, expected 2 or more: the network's batch norm"),
        ("engine.test_batch=1", "test_batch is 1, expected 2 or more"),
        ("engine.calibrate_on=1", "calibrate_on is 1, expected 2 or more"),
        ("model.keep_float=head", 'keep_float is \'head\', expected a list of strings such as ["a", "b"]'),
        ("engine.precision=float8", "precision is 'float8', expected one of: auto"),
    ],
)
def test_a_setting_that_cannot_be_run_is_refused(setting: str, sentence: str, refused: Refusal) -> None:
    assert sentence in refused("run", "quickstart", *SMALL[4:], "--set", setting)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "quickstrat"], "'quickstrat' is neither a preset nor a file; presets: "),
        (["run", "cifar10-silo"], "run `fedvote data get cifar10`"),
        (["run", ""], "'' is neither a preset nor a file"),
        (["keys", "metod"], "; did you mean method?"),
        (["reproduce", "figure-4x"], "all of them: all, or your own as FILE.py:NAME; did you mean figure-4"),
        (["export", "nowhere"], "there is no nowhere, expected a run folder or its network.safetensors"),
        (["sweep", "quickstart", "--over", "seed=1,1"], "--over has seed=1 twice"),
        (["sweep", "quickstart", "--over", "seed=1", "--over", "seed=2"], "--over has seed twice"),
        (["sweep", "quickstart", "--over", "seed=1,2", "--set", "seed=3"], "--set and --over both set seed"),
        (["deploy", "certificates", "there", "--host", ""], "expected names or addresses"),
        (["deploy", "certificates", "there", "--host", "a", "--days", "99999999"], "and 1 to 36500 days"),
        (["bench", "codec", "--json", "/proc/x.json"], "/proc/x.json: "),
        (["deploy", "key", "/proc/x"], "/proc/x: "),
        (["run", "--rounds", "3"], "No such option"),
        (["run", "--seed", "one"], "'one' is not a valid int"),
        (["run", "--device", "tpu"], "device is 'tpu', expected auto, cpu or cuda"),
        (["run", "--resume", "--out", "nowhere"], "nowhere holds no run to resume"),
        (["train"], "No such command 'train'"),
        (["rum"], "data, deploy; did you mean run?\n"),
        (["data", "gte"], "No such command 'gte'; known: get, check, show; did you mean get?\n"),
        (["run", "quickstart", "--lr", "0.1"], "No such option '--lr'; did you mean --set method.lr=0.1?"),
        (["deploy", "local", "--batch-size=8"], "'--batch-size'; did you mean --set local.batch=8?"),
        (["sweep", "quickstart", "--ot", "here"], "No such option '--ot'; did you mean --out"),
        (["run", "quickstart", "--set", "rounds", "5"], "--set 'rounds' is not of the form a.b=c; did you mean --set "),
        (["run", "--set", "rounds", "5"], "; did you mean --set rounds=5?"),
        (["run", "--set", "device=cuda"], "; it is an option of the command, --device"),
        (["run", "--set", "method.learning_rate=0.1"], "; did you mean lr?"),
        (["run", "--set", "batch_size=8"], "; did you mean local.batch?"),
        (["list", "colours"], "cannot list 'colours'; known: methods, attacks"),
        (["list", "reputation"], "presets; did you mean reputations?"),
        (["report"], "Missing argument"),
        (["report", "nowhere"], "there is no folder"),
        (["run", "--set", "data=digitz"], "your own is FILE.py:NAME in a configuration"),
        (["run", "--set", "data=digitz"], "; did you mean digits?"),
        (["run", "--set", "data=hosp:load"], "choose one of digits, fashion-mnist"),
        (["run", "--set", "data=hosp:load"], "; did you mean hosp.py:load?"),
        (["sweep", "quickstart", "--over", "data=hosp:load,digits"], "; did you mean hosp.py:load?"),
        (["data", "check", "mnist"], "there is no dataset 'mnist'"),
        (["data", "show", "quickstrat"], "neither a preset nor a file"),
        (["data", "show", "cifar10-silo"], "fedvote data get cifar10"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_command_that_makes_no_sense_is_refused(arguments: list[str], sentence: str, refused: Refusal) -> None:
    assert sentence in refused(*arguments)


def test_a_measurement_that_fails_leaves_files_as_they_were(refused: Refusal, tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("measured before")
    command = "bench", "infer", "--model", "lenet6", "--json", "new.json", "--page", "old.html"
    assert "model 'lenet6' is not known" in refused(*command)
    assert (tmp_path / "old.html").read_text() == "measured before" and not (tmp_path / "new.json").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_gpu_that_is_not_there_is_refused(refused: Refusal) -> None:
    assert "use --device cpu or --device auto" in refused("run", "--device", "cuda")


def test_the_cost_of_a_network_that_does_not_fit_names_the_options(refused: Refusal, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef net(shape, classes):\n    return nn.Linear(8, classes)\n"
    )
    assert "; --shape and --classes say what the network takes and gives" in refused("cost", "mine.py:net")


def test_a_file_that_is_not_toml_is_refused(refused: Refusal, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[method\n")
    assert "mine.toml is not TOML" in refused("run", "mine.toml")


def test_a_folder_with_another_run_is_refused_and_kept(fedvote: Command, refused: Refusal) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    assert "already holds a run (2 of 2 rounds)" in refused("run", *SMALL, "--out", "run")
    other = refused("run", *SMALL, "--seed", "1", "--out", "run", "--resume")
    assert "differs in seed (0 there, 1 asked)" in other
    assert "differs in method.lr" in refused("run", "--out", "run", "--resume", "--set", "method.lr=1")
    assert "has 2 rounds already" in refused("run", "--out", "run", "--resume", "--set", "rounds=1")


def test_a_place_that_cannot_be_written_is_named(fedvote: Command, refused: Refusal) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    assert "/proc/x.html: " in refused("report", "run", "--out", "/proc/x.html")
    assert "/proc/x.onnx: " in refused("export", "run", "--out", "/proc/x.onnx")
    assert "File name too long" in refused("run", *SMALL, "--out", "x" * 300)


def test_a_folder_with_foreign_files_is_refused_and_kept(refused: Refusal, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.jpg").write_bytes(b"\xff\xd8")
    assert "photos is not empty and holds no run" in refused("run", *SMALL, "--out", "photos")
    assert "cannot be written" in refused("run", *SMALL, "--out", "photos/me.jpg")


@pytest.mark.parametrize("left", [0, 100, -1])
def test_a_damaged_checkpoint_is_refused_and_kept(
    left: int, fedvote: Command, refused: Refusal, tmp_path: Path
) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:left])
    assert "checkpoint.safetensors is damaged" in refused("run", "--resume", "--out", "run", "--set", "rounds=3")
