"""Programs that were started are stopped, with their children, however the block is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fedvote.engines.flower.local_federation import LocalFederation
from fedvote.engines.flower.processes import Processes, alive

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
LATE_CHILD = """
import signal, subprocess, sys, time
def end(*_):
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""
ORPHAN = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
"""
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
)


def start(programs: Processes, code: str) -> int:
    """Starts it and waits for its first line."""
    process = programs.start("program", [sys.executable, "-c", code])
    limit = time.monotonic() + 30
    while "\n" not in programs.log("program").read_text() and time.monotonic() < limit:
        time.sleep(0.02)
    return process.pid


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_whatever_goes_wrong_programs_and_their_children_end(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), Processes(tmp_path) as programs:
        pids = [start(programs, PARENT)]
        pids.append(int(programs.log("program").read_text()))
        assert all(alive(pid) for pid in pids)
        raise error
    assert not any(alive(pid) for pid in pids)


def test_a_child_that_is_born_while_its_parent_ends_ends_too(tmp_path: Path) -> None:
    with Processes(tmp_path) as programs:
        start(programs, LATE_CHILD)
    ready, child = programs.log("program").read_text().split()
    assert ready == "ready" and not alive(int(child))


def test_a_child_ends_though_its_parent_was_killed_and_it_has_a_session_of_its_own(tmp_path: Path) -> None:
    """As the server's app does, after its SuperLink was killed: it would hold the run folder for a minute."""
    with Processes(tmp_path) as programs:
        start(programs, ORPHAN)
        programs.running["program"].wait()
        child = int(programs.log("program").read_text())
        assert alive(child)
    assert not alive(child)


def test_who_has_ended_and_was_not_asked_how_is_not_alive() -> None:
    assert alive(os.getpid())
    ended = subprocess.Popen(["true"])
    limit = time.monotonic() + 30
    while alive(ended.pid) and time.monotonic() < limit:
        time.sleep(0.01)
    assert Path(f"/proc/{ended.pid}/stat").exists() and not alive(ended.pid)
    ended.wait()
    assert not alive(ended.pid)


def test_nothing_is_needed_to_find_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small images have no ps."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with Processes(tmp_path) as programs:
        pids = [start(programs, PARENT), int(programs.log("program").read_text())]
        assert all(alive(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)


def test_who_is_interrupted_twice_still_stops_everything(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Processes(tmp_path) as programs:
        pid = start(programs, STUBBORN)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        programs.stop = partial(programs.stop, patience=1.0)  # type: ignore[method-assign]
        raise KeyboardInterrupt
    assert not alive(pid)


def test_who_is_interrupted_while_a_program_starts_stops_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program runs, and the caller does not have it yet."""
    started, popen = [], subprocess.Popen

    def interrupted(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*args, **options))
        signal.raise_signal(signal.SIGINT)
        return started[0]

    with pytest.raises(KeyboardInterrupt), Processes(tmp_path) as programs:
        monkeypatch.setattr(subprocess, "Popen", interrupted)
        programs.start("program", [sys.executable, "-c", "import time; time.sleep(600)"])
    assert len(started) == 1 and not alive(started[0].pid)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)  # it is heeded again


def test_a_program_heeds_signals_though_they_were_postponed_when_it_started(tmp_path: Path) -> None:
    with Processes(tmp_path) as programs:
        code = "import signal; print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)"
        programs.start("program", [sys.executable, "-c", code]).wait()
    assert programs.tail("program") == "True"


def test_who_does_not_want_to_end_is_ended(tmp_path: Path) -> None:
    with Processes(tmp_path) as programs:
        pid = start(programs, STUBBORN)
        programs.stop("program", patience=0.2)
        assert not alive(pid) and not programs.running


def test_a_program_gets_the_environment_and_its_log_is_kept(tmp_path: Path) -> None:
    with Processes(tmp_path / "logs", {"COLOUR": "blue"}) as programs:
        code = "import os; print(os.environ['COLOUR'], 'HOME' in os.environ)"
        programs.start("program", [sys.executable, "-c", code]).wait()
        assert programs.ended() == ["program"]
    assert programs.tail("program") == f"blue {'HOME' in os.environ}" and programs.tail("other") == ""


def test_logs_and_the_database_are_for_their_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the process's own mask would let others read them."""
    mask = os.umask(0)
    try:
        with Processes(tmp_path) as programs:
            programs.start("true", ["true"]).wait()
        federation = LocalFederation(tmp_path / "federation", 1, tls=False)
        (tmp_path / "federation").mkdir()
        monkeypatch.setattr(Processes, "start", lambda *_: None)
        monkeypatch.setattr(LocalFederation, "_wait_for", lambda *_: None)
        federation.start_superlink()
    finally:
        os.umask(mask)
    for file in (tmp_path / "true.log", tmp_path / "federation" / "superlink.db"):
        assert file.stat().st_mode & 0o777 == 0o600, file


def test_the_end_of_a_log_is_of_the_last_start(tmp_path: Path) -> None:
    with Processes(tmp_path) as programs:
        for text in ("first", "second"):
            programs.start("program", [sys.executable, "-c", f"print({text!r})"]).wait()
            assert programs.tail("program") == text
