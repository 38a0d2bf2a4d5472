"""The command line: what it prints, and that a mistake is one sentence, exit code 2, and nothing changed on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from fedvote import __version__
from fedvote.cli import app, main
from fedvote.engines.flower.roster import keys_in
from fedvote.runs.catalogue import KINDS
from fedvote.runs.checkpoint import load_snapshot
from fedvote.runs.config import presets
from tests.toy import assert_same

SMALL = ["--set", "rounds=2", "--set", "federation.clients=3", "--set", "local.steps=1", "--device", "cpu"]
OWN = """
from dataclasses import dataclass
from torch import nn
from fedvote import FedAvg

@dataclass(frozen=True)
class Mine(FedAvg):
    patience: int = 3

def tiny(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8, bias=False), nn.ReLU(), nn.Linear(8, classes))
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Command = Callable[..., Outcome]
Refusal = Callable[..., str]


@pytest.fixture
def fedvote(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command line in this process, with tmp_path as the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FEDVOTE_DATA", str(tmp_path / "no-data"))

    def call(*arguments: str) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        code = stop.value.code
        assert isinstance(code, int)
        return Outcome(code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(fedvote: Command, tmp_path: Path) -> Refusal:
    """The one sentence with which a command is refused; nothing below the working directory may change."""

    def call(*arguments: str) -> str:
        before = contents(tmp_path)
        outcome = fedvote(*arguments)
        assert contents(tmp_path) == before
        assert outcome.code == 2 and outcome.out == ""
        assert outcome.err.startswith("fedvote: ") and outcome.err.count("\n") == 1 and outcome.err.endswith("\n")
        assert "Traceback" not in outcome.err
        return outcome.err

    return call


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file's bytes, and every folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


# Runs


def test_a_run_leaves_a_folder_and_says_how_it_ended(fedvote: Command, tmp_path: Path) -> None:
    outcome = fedvote("run", "quickstart", *SMALL, "--seed", "3", "--out", "here")
    assert outcome.code == 0
    assert "deployed model" in outcome.out and "here/report.html" in outcome.out
    assert [line[:9] for line in outcome.err.splitlines()] == ["round 1/2", "round 2/2"]
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files >= {
        "config.toml", "metrics.jsonl", "clients.json", "environment.json", "checkpoint.safetensors", "report.html",
    }  # fmt: skip
    assert "seed = 3" in (tmp_path / "here" / "config.toml").read_text()
    records = [json.loads(line) for line in (tmp_path / "here" / "metrics.jsonl").read_text().splitlines()]
    assert [record["round"] for record in records] == [1, 2]
    assert records[0].keys() >= {
        "accuracy", "accuracy_float", "loss", "uplink_bytes", "downlink_bytes", "uplink_bits_per_weight", "seconds",
        "clients",
    }  # fmt: skip


def test_the_written_configuration_runs_again_to_the_same_bits(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--set", "method.reputation=proportional").code == 0
    first = tmp_path / "runs" / "quickstart"
    assert fedvote("run", str(first / "config.toml"), "--device", "cpu", "--out", "again").code == 0
    assert (first / "config.toml").read_bytes() == (tmp_path / "again" / "config.toml").read_bytes()
    a, b = (load_snapshot(folder / "checkpoint.safetensors") for folder in (first, tmp_path / "again"))
    assert_same(a.state, b.state)


def test_users_own_methods_and_models_run_and_resume_from_anywhere(
    fedvote: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(OWN)
    own = ["--set", "method=own.py:Mine", "--set", "method.patience=7", "--set", "model=own.py:tiny"]
    assert fedvote("run", "quickstart", *SMALL, *own, "--out", "run").code == 0
    text = (tmp_path / "run" / "config.toml").read_text()
    assert f'name = "{tmp_path}/own.py:Mine"' in text and "patience = 7" in text
    assert f'name = "{tmp_path}/own.py:tiny"' in text
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert fedvote("run", "--resume", "--out", "../run", "--set", "rounds=3", "--device", "cpu").code == 0
    assert load_snapshot(tmp_path / "run" / "checkpoint.safetensors").round == 3


def test_a_finished_run_is_resumed_without_harm(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "run").code == 0
    before = contents(tmp_path)
    outcome = fedvote("run", "--resume", "--out", "run", "--device", "cpu")
    assert outcome.code == 0 and outcome.err == "" and "deployed model" in outcome.out
    assert contents(tmp_path) == before


def test_a_run_made_longer_is_a_longer_run(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "grown").code == 0
    assert fedvote("run", "--resume", "--out", "grown", "--set", "rounds=4", "--device", "cpu").code == 0
    assert fedvote("run", *SMALL, "--set", "rounds=4", "--out", "whole").code == 0
    grown, whole = (load_snapshot(tmp_path / name / "checkpoint.safetensors") for name in ("grown", "whole"))
    assert grown.round == whole.round == 4
    assert_same(grown.state, whole.state)
    assert (tmp_path / "grown" / "config.toml").read_bytes() == (tmp_path / "whole" / "config.toml").read_bytes()
    lines = [(tmp_path / name / "metrics.jsonl").read_text().splitlines() for name in ("grown", "whole")]
    a, b = ([{k: v for k, v in json.loads(x).items() if "seconds" not in k} for x in part] for part in lines)
    assert a == b


def test_what_is_probably_not_meant_is_said(fedvote: Command) -> None:
    alone = fedvote("run", *SMALL, "--set", "attack=inverse", "--out", "a")
    assert alone.code == 0 and "attack is Inverse, but federation.hostile is 0: nobody attacks" in alone.err
    tame = fedvote("run", *SMALL, "--set", "federation.hostile=1", "--out", "b")
    assert tame.code == 0 and "federation.hostile is 1, but there is no attack" in tame.err
    both = fedvote("run", *SMALL, "--set", "federation.hostile=1", "--set", "attack=inverse", "--out", "c")
    assert both.code == 0 and "fedvote:" not in both.err


def test_a_comparison_leaves_the_pages_of_runs_alone(fedvote: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fedvote("run", *SMALL, "--out", name)
    pages = [(tmp_path / name / "report.html").read_bytes() for name in ("a", "b")]
    assert fedvote("report", "a", "b").out == "compare.html\n" and (tmp_path / "compare.html").is_file()
    assert [(tmp_path / name / "report.html").read_bytes() for name in ("a", "b")] == pages


def test_the_version_is_said(fedvote: Command) -> None:
    assert fedvote("--version").out == f"fedvote {__version__}\n"


# What is refused


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("round=3", "has no key 'round'; known: seed, rounds"),
        ("local.passes=3", "local has no key 'passes'; known: steps, batch, epochs"),
        ("method.rate=3", "method 'fedvote' has no key 'rate'; known: lr"),
        ("method.optimizer_options.rho=3", "Adam has no option rho; known: amsgrad"),
        ("method=fedsgd", "method 'fedsgd' is not known; known: fedvote, fedavg"),
        ("method.optimizer=LBFGS", "optimizer 'LBFGS' is not one"),
        ("method.votes=many", "votes is 'many', expected one of: binary, ternary"),
        ("method.reputation=fame", "reputation 'fame' is not known; known: uniform, proportional"),
        ("model=resnet", "model 'resnet' is not known; known: digits-cnn, lenet5, small-cnn, vgg7"),
        ("model=gone.py:net", "gone.py:net': there is no Python file"),
        ('model.keep_float=["head"]', "keep_float names 'head'"),
        ("data=mnist", "there is no dataset 'mnist': choose one of digits"),
        ("data=cifar10", "cifar10 is not complete"),
        ("partition=even", "partition 'even' is not known; known: iid"),
        ("partition=writer", "digits does not say who wrote what"),
        ("partition.alpha=0", "alpha is 0.0, expected"),
        ("rounds=many", "rounds is 'many', expected int"),
        ("rounds=0", "rounds is 0, expected"),
        ("rounds", "is not of the form a.b=c"),
        ("federation.cohort=12", "cohort is 12, expected 0 (everybody) to 11"),
        ("federation.clients=2000", "too few for 2000 clients"),
        ("local.batch=500", "a batch is 500: ask for fewer clients"),
        ("local.batch=1", "batch is 1, expected 2 or more: the network has batch norm"),
        ("engine.test_batch=1", "test_batch is 1, expected 2 or more"),
        ("engine.calibrate_on=1", "calibrate_on is 1, expected 2 or more"),
        ("model.keep_float=head", 'keep_float is \'head\', expected a list of strings such as ["a", "b"]'),
        ("engine.precision=float8", "precision is 'float8', expected one of: auto"),
    ],
)
def test_a_setting_that_cannot_be_run_is_refused(setting: str, sentence: str, refused: Refusal) -> None:
    assert sentence in refused("run", "quickstart", *SMALL[4:], "--set", setting)


def test_who_makes_a_key_is_told_by_what_the_server_will_know_it(fedvote: Command, tmp_path: Path) -> None:
    said = fedvote("deploy", "key", "keys/north").out
    ((known, name),) = keys_in(tmp_path / "keys").items()
    assert name == "north" and said.strip().endswith(f"which will know it as {known}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "quickstrat"], "'quickstrat' is neither a preset nor a file; presets: "),
        (["run", "cifar10-silo"], "run `fedvote data get cifar10`"),
        (["run", ""], "'' is neither a preset nor a file"),
        (["export", "nowhere"], "there is no nowhere, expected a run folder or its network.safetensors"),
        (["sweep", "quickstart", "--over", "seed=1,1"], "--over has seed=1 twice"),
        (["sweep", "quickstart", "--over", "seed=1", "--over", "seed=2"], "--over has seed twice"),
        (["deploy", "certificates", "there", "--host", ""], "expected names or addresses"),
        (["deploy", "certificates", "there", "--host", "a", "--days", "99999999"], "and 1 to 36500 days"),
        (["bench", "codec", "--json", "/proc/x.json"], "/proc/x.json: "),
        (["deploy", "key", "/proc/x"], "/proc/x: "),
        (["run", "--rounds", "3"], "No such option"),
        (["run", "--seed", "one"], "'one' is not a valid int"),
        (["run", "--device", "tpu"], "device is 'tpu', expected auto, cpu or cuda"),
        (["run", "--resume", "--out", "nowhere"], "nowhere holds no run to go on with"),
        (["train"], "No such command 'train'"),
        (["list", "colours"], "cannot list 'colours'; known: methods, attacks"),
        (["report"], "Missing argument"),
        (["report", "nowhere"], "has no config.toml"),
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


def test_a_mistake_that_shows_in_round_1_can_be_mended_in_the_same_folder(fedvote: Command) -> None:
    krum = [*SMALL, "--out", "run", "--set", "method=fedavg", "--set", "method.aggregate=krum"]
    wrong = fedvote("run", *krum, "--set", "method.aggregate.byzantine=10")
    assert wrong.code == 2 and "Krum with byzantine = 10 needs" in wrong.err
    assert fedvote("run", *krum, "--set", "method.aggregate.byzantine=0").code == 0


def test_a_run_in_which_nobody_counts_says_so_and_goes_on(fedvote: Command) -> None:
    outcome = fedvote("run", *SMALL, "--out", "run", "--set", "method=fedavg", "--set", "method.lr=1e30")
    assert outcome.code == 1 and outcome.err.count("3 not counted, client 0: ") == 2
    assert "in 2 of 2 rounds nobody was counted; in the last, client 0: " in outcome.err.splitlines()[-1]


def test_who_goes_on_with_another_file_of_the_same_name_is_told(fedvote: Command) -> None:
    own = Path("mine.py")
    own.write_text("from fedvote.reputation import Uniform\n\nclass Mine(Uniform):\n    pass\n")
    run = ["run", *SMALL[2:], "--out", "run", "--set", f"method.reputation={own}:Mine"]
    assert fedvote(*run, "--set", "rounds=1").code == 0
    same = fedvote(*run, "--set", "rounds=2", "--resume")
    own.write_text(own.read_text() + "    best = True\n")
    other = fedvote(*run, "--set", "rounds=3", "--resume")
    assert same.code == other.code == 0 and "has changed" not in same.err
    assert f"{own.resolve()} has changed since this run began: what follows is another one" in other.err


OWN_PARTS = """
from dataclasses import dataclass
from fedvote.reputation import Uniform

@dataclass(frozen=True)
class Needs(Uniform):
    share: float

def asks(something):
    return something

def fails(shape, classes):
    raise ValueError("too many classes")
"""


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("method.reputation=own.py:Needs", "needs share, which has no default: set it, or give it one"),
        ("data=own.py:asks", "expected a function without arguments that returns what"),
        ("model=own.py:fails", "could not be made for inputs of shape (1, 8, 8) and 10 classes (too many classes)"),
    ],
)
def test_parts_of_ones_own_that_cannot_be_made_are_refused(
    setting: str, sentence: str, refused: Refusal, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(OWN_PARTS)
    assert sentence in refused("run", *SMALL, "--set", setting)


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


# Lists, reports, data


def test_list_names_everything_there_is(fedvote: Command) -> None:
    outcome = fedvote("list")
    assert outcome.code == 0 and outcome.err == ""
    for kind, known in {**KINDS, "presets": presets()}.items():
        assert f"{kind}:\n" in outcome.out
        for name in known:
            assert f"\n  {name} " in outcome.out


@pytest.mark.parametrize("kind", [*KINDS, "presets"])
def test_list_of_one_kind_as_json_says_a_line_about_each(kind: str, fedvote: Command) -> None:
    outcome = fedvote("list", kind, "--json")
    assert outcome.code == 0
    (listed,) = json.loads(outcome.out).items()
    assert listed[0] == kind and list(listed[1]) == list(KINDS.get(kind, presets()))
    assert all(about and "\n" not in about for about in listed[1].values())


def test_list_as_json_has_every_kind(fedvote: Command) -> None:
    assert list(json.loads(fedvote("list", "--json").out)) == [*KINDS, "presets"]


def test_report_writes_one_page_about_several_runs(fedvote: Command, tmp_path: Path) -> None:
    assert fedvote("run", *SMALL, "--out", "one").code == 0
    assert fedvote("run", *SMALL, "--set", "method=fedavg", "--out", "two").code == 0
    outcome = fedvote("report", "one", "two", "--out", "page.html")
    assert outcome.code == 0 and outcome.out.strip() == "page.html"
    page = (tmp_path / "page.html").read_text()
    assert "<html" in page and "one" in page and "two" in page
    assert fedvote("report", "two").out.strip() == "two/report.html"


def test_data_check_says_what_is_there(fedvote: Command) -> None:
    assert fedvote("data", "check", "digits").out == "digits needs no files\n"
    missing = fedvote("data", "check", "cifar10")
    assert missing.code == 2 and "missing" in missing.out and "Traceback" not in missing.err


def test_data_show_draws_who_has_what(fedvote: Command) -> None:
    outcome = fedvote("data", "show", "quickstart", "--set", "federation.clients=4")
    assert outcome.code == 0
    rows = [line.split()[0] for line in outcome.out.splitlines() if line.strip()]
    assert rows[:5] == ["client", "0", "1", "2", "3"]


def test_help_says_what_arguments_are(fedvote: Command) -> None:
    assert "None given: say which there are" in fedvote("bench", "--help").out
    assert "A dataset, as `list datasets` names it" in fedvote("data", "get", "--help").out


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["data", "--help"], ["list", "--help"]], ids=str)
def test_help_is_there(arguments: list[str], fedvote: Command) -> None:
    outcome = fedvote(*arguments)
    assert outcome.code == 0 and outcome.out.startswith("Usage: ")


def test_python_m_fedvote_is_the_same_command_line() -> None:
    command = [sys.executable, "-m", "fedvote"]
    listed = subprocess.run([*command, "list", "methods", "--json"], capture_output=True, text=True, check=False)
    assert listed.returncode == 0 and "fedvote" in json.loads(listed.stdout)["methods"] and listed.stderr == ""
    wrong = subprocess.run([*command, "run", "quickstrat"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and wrong.stdout == "" and wrong.stderr.startswith("fedvote: 'quickstrat'")
    assert wrong.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "sweep", "bench", "data get", "deploy local", "deploy certificates"])
def test_help_is_plain_text(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == 0 and "[" in shown.output and "\\" not in shown.output
