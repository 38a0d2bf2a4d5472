"""The files of a run folder cannot make this process run code that its user did not name."""

from __future__ import annotations

import py_compile
from pathlib import Path

import pytest

from fedvote import ConfigError
from fedvote.runs.config import read
from fedvote.runs.experiment import configure
from fedvote.runs.folder import RunFolder

CODE = """
from pathlib import Path
from fedvote import FedAvg
(Path(__file__).parent / "ran").touch()
class Mine(FedAvg): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Somebody else's run folder, with code beside it."""
    (tmp_path / "run").mkdir()
    (tmp_path / "theirs.py").write_text(CODE)
    (tmp_path / "run" / "config.toml").write_text(f'[method]\nname = "{tmp_path}/theirs.py:Mine"\n')
    return tmp_path / "run"


def test_resuming_a_folder_does_not_run_its_code(folder: Path) -> None:
    for settings in ([], ["rounds=3"], ["method.lr=0.1"]):
        with pytest.raises(ConfigError, match=r"config\.toml would run .*theirs\.py, .* with --trust") as refusal:
            configure(None, settings, folder, resume=True)
        assert "\n" not in str(refusal.value)
    with pytest.raises(ConfigError, match="would run"):
        RunFolder(folder).config()
    assert not (folder.parent / "ran").exists()


def test_a_link_to_compiled_code_is_not_run_either(folder: Path) -> None:
    code = folder.parent / "theirs.py"
    py_compile.compile(str(code), cfile=str(folder.parent / "hidden.pyc"))
    code.unlink()
    code.symlink_to(folder.parent / "hidden.pyc")
    with pytest.raises(ConfigError, match="would run"):
        configure(None, [], folder, resume=True)
    with pytest.raises(ConfigError, match=r"expected a file with Python's source"):
        configure(None, [], folder, resume=True, trust=True)
    assert not (folder.parent / "ran").exists()


@pytest.mark.parametrize("table", ["data", "model", "partition", "attack"])
def test_no_table_of_the_configuration_runs_code(table: str, folder: Path) -> None:
    (folder / "config.toml").write_text(f'[{table}]\nname = "{folder.parent}/theirs.py:Mine"\n')
    with pytest.raises(ConfigError, match=r"would run .*theirs\.py"):
        configure(None, [], folder, resume=True)
    assert not (folder.parent / "ran").exists()


def test_trust_runs_the_code_of_a_folder(folder: Path) -> None:
    config, _ = configure(None, [], folder, resume=True, trust=True)
    assert type(config.method).__name__ == "Mine" and (folder.parent / "ran").exists()
    assert RunFolder(folder).config() == config  # this process has run it before


def test_a_file_that_a_setting_names_is_the_users_own(folder: Path) -> None:
    config, _ = configure(None, [f"method={folder.parent}/theirs.py:Mine"], folder, resume=True)
    assert type(config.method).__name__ == "Mine"


def test_a_file_of_the_users_experiment_is_trusted_in_its_run_folder(folder: Path, tmp_path: Path) -> None:
    """Also one that is named and never run, as the dataset of a server that brings its own test data."""
    experiment = tmp_path / "mine.toml"
    experiment.write_text(f'[data]\nname = "{tmp_path}/theirs.py:Mine"\n')
    config = read(str(experiment))
    (folder / "config.toml").write_text(experiment.read_text())
    assert RunFolder(folder).config() == config and not (tmp_path / "ran").exists()
