"""Nobody else works on a run that is going on, and nobody is held off by one that is not."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from filelock import FileLock, Timeout

from fedvote.errors import ConfigError
from fedvote.runs.claim import claim, release
from fedvote.runs.folder import RunFolder
from fedvote.runs.folder_lock import LOCK, lock
from fedvote.runs.simulated_run import run
from tests.runs.run_folders import SMALL, filled, refuse

GOING_ON = "is the folder of a run in progress"
CLAIM = (
    "import sys, pathlib; from fedvote.runs.claim import RunFolder, claim; "
    "f = RunFolder(pathlib.Path(sys.argv[1])); claim(f, f.config(), True); "
)


def claiming(folder: RunFolder, then: str = "") -> list[str]:
    """The command of another process that claims the run in a folder."""
    return [sys.executable, "-c", f"{CLAIM} {then}", str(folder.path)]


def is_free(folder: RunFolder) -> bool:
    """Whether another process could lock the folder. A lock belongs to the open file, whichever process opened it."""
    try:
        with FileLock(folder.path / LOCK, timeout=0):
            return True
    except Timeout:
        return False


def test_nobody_else_in_a_process_works_on_its_run(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    claim(folder, SMALL, resume=True)
    refuse(GOING_ON, RunFolder(tmp_path), SMALL)
    refuse(GOING_ON, folder, SMALL)  # it was not let go by the first refusal
    release(folder)
    assert claim(RunFolder(tmp_path), SMALL, resume=True) is not None


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    claim(folder, SMALL, resume=False)
    second = subprocess.run(claiming(folder), capture_output=True, text=True, check=False)
    assert second.returncode == 1 and GOING_ON in second.stderr
    release(folder)
    assert is_free(folder)


def test_a_process_that_is_killed_leaves_no_lock_that_holds(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    waits = claiming(folder, "print('claimed', flush=True); sys.stdin.read()")
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "claimed\n"
        refuse(GOING_ON, folder, SMALL)
        other.kill()
    assert claim(folder, SMALL, resume=True) is not None


def test_any_thread_may_release_a_run(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    claim(folder, SMALL, resume=True)
    assert not is_free(folder)
    thread = Thread(target=release, args=[folder])
    thread.start()
    thread.join()
    assert is_free(folder)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_stops_no_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr("fcntl.flock", flock)
    folder = filled(tmp_path, 1)
    assert claim(folder, SMALL, resume=True) is not None
    refuse(GOING_ON, RunFolder(tmp_path), SMALL)  # this process still knows
    release(folder)
    assert claim(RunFolder(tmp_path), SMALL, resume=True) is not None


def test_a_lock_alone_makes_no_folder_foreign(tmp_path: Path) -> None:
    with FileLock(tmp_path / LOCK):
        pass
    (tmp_path / LOCK).touch()
    assert claim(RunFolder(tmp_path), SMALL, resume=False) is None


def test_a_run_from_before_there_was_a_lock_file_goes_on(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    (tmp_path / LOCK).unlink()
    assert claim(folder, SMALL, resume=True) is not None


def test_a_lock_is_one_hidden_empty_file(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    names = {file.name for file in folder.path.iterdir()}
    assert names == {"config.toml", "metrics.jsonl", "checkpoint.safetensors", LOCK}
    assert LOCK.startswith(".") and not (tmp_path / LOCK).read_bytes()


def test_a_lock_that_cannot_be_opened_is_no_leave_to_go_on(tmp_path: Path) -> None:
    """A file of another user's, or something that is no file."""
    folder = RunFolder(tmp_path / "run")
    (folder.path / ".lock").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"\.lock cannot be opened \(.*\), so another run might use the folder"):
        claim(folder, SMALL, resume=False)


def test_a_run_that_ends_between_the_check_and_the_lock_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")

    def late(path: Path) -> None:
        monkeypatch.setattr("fedvote.runs.claim.lock", lock)
        list(run(SMALL, folder, device="cpu"))
        lock(path)

    monkeypatch.setattr("fedvote.runs.claim.lock", late)
    with pytest.raises(ConfigError, match="already holds a run"):
        claim(folder, SMALL, resume=False)
