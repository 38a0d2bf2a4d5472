"""Programs that are started together and stopped together, each with its log."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

ENDS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
"""Signals that end a program: by Ctrl-C, by a supervisor, by a closing terminal."""
MARKS = "FEDVOTE_STARTED_AS"
"""In a program's environment, which its children inherit: by it they are found after the program itself has ended."""


@dataclass
class Processes:
    """Programs by name. Leaving the `with` block in any way stops those that still run."""

    logs: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _token: str = field(default_factory=lambda: secrets.token_hex(8))
    _log_starts: dict[str, int] = field(default_factory=dict)  # name -> bytes of its log when it was last started

    def __enter__(self) -> Processes:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _undisturbed():
            self.stop(*reversed(self.running))

    def start(self, name: str, command: Sequence[str], cwd: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a program in its own session: Ctrl-C reaches only us, and we stop the programs in order."""
        with _postponed(), open(self.log(name), "ab", opener=_for_the_owner) as log:
            self._log_starts[name] = log.tell()
            marks = f"{os.environ.get(MARKS, '')} {self._mark(name)}".strip()
            self.running[name] = subprocess.Popen(
                command, cwd=cwd, env={**os.environ, **self.environment, MARKS: marks}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        return self.running[name]

    def _mark(self, name: str) -> str:
        return f"{self._token}/{name};"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def ended(self) -> list[str]:
        """Names of the programs that have ended by themselves."""
        return [name for name, process in self.running.items() if process.poll() is not None]

    def kill(self, name: str) -> None:
        """Kill a program and its children, without warning."""
        process = self.running.pop(name)
        for pid in [process.pid, *descendants(process.pid)]:
            _signal(pid, signal.SIGKILL)
        process.wait()

    def stop(self, *names: str, patience: float = 10.0) -> None:
        """Ask programs to end; after `patience` seconds, kill them. All their children have ended on return, too."""
        processes = [self.running[name] for name in names]
        children = [pid for process in processes for pid in descendants(process.pid)]
        for name, process in zip(names, processes, strict=True):
            _signal(process.pid, signal.SIGTERM)
            del self.running[name]
        limit = time.monotonic() + patience
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
        left = {*children, *_marked(map(self._mark, names))}  # some were born since, some lost their parent
        for pid in left:
            _signal(pid, signal.SIGKILL)
        for process in processes:
            process.kill()  # harmless if it has ended: Popen checks first
            process.wait()
        limit = time.monotonic() + patience
        while any(map(alive, left)) and time.monotonic() < limit:  # the system takes a moment to end them
            time.sleep(0.01)

    def tail(self, name: str, lines: int = 15) -> str:
        """The end of a log, since the program's last start."""
        log = self.log(name)
        text = log.read_bytes()[self._log_starts.get(name, 0) :].decode(errors="replace") if log.is_file() else ""
        return "\n".join(text.splitlines()[-lines:])


def _for_the_owner(path: str, flags: int) -> int:
    """Open a file that no other user of the machine may read."""
    return os.open(path, flags, 0o600)


def end_as_by_interrupt() -> None:
    """From now on these signals count as Ctrl-C, so that all programs are stopped; ignored ones stay ignored."""
    for number in ENDS:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, signal.default_int_handler)


@contextlib.contextmanager
def _postponed() -> Iterator[None]:
    """Heed signals after the block: one between a program's start and its entry in `running` would leave it behind.

    Ignoring them instead would be inherited by the program. Ignored signals stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    arrived: list[int] = []
    heeded = [number for number in ENDS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for late in arrived:
        signal.raise_signal(late)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore signals in the block: a second Ctrl-C must not leave programs behind."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def descendants(pid: int) -> list[int]:
    """The ids of a process's children, their children, and so on."""
    parent = _parents()
    found, fresh = [], [pid]
    while fresh:
        fresh = [child for child, above in parent.items() if above in fresh]
        found += fresh
    return found


def alive(pid: int) -> bool:
    """Whether a process runs. One that has ended, and whose parent has not asked how, does not."""
    if Path("/proc/self/stat").exists():
        return _stat(pid)[:1] not in ([], ["Z"], ["X"])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _stat(pid: int) -> list[str]:
    """State, parent, group, session and so on of a process, from /proc; empty if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 1 :].split()  # pid (name) state parent group session


def _processes() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]


def still_running(name: str, value: str) -> list[int]:
    """Programs that a `Processes` started with this variable, and their children; none where there is no /proc."""
    environments = {pid: _environment(pid) for pid in _processes()}
    wanted = f"{name}={value}\0".encode(), f"{MARKS}=".encode()
    return sorted(pid for pid, environment in environments.items() if all(text in environment for text in wanted))


def _marked(marks: Iterable[str]) -> list[int]:
    """The processes with one of these marks, also those whose parents have ended; none where there is no /proc."""
    wanted = [mark.encode() for mark in marks]
    environments = {pid: _environment(pid) for pid in _processes()}
    return [pid for pid, environment in environments.items() if any(mark in environment for mark in wanted)]


def _environment(pid: int) -> bytes:
    """The environment with which a process started; empty if it has ended, or is another user's."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _parents() -> dict[int, int]:
    """Process id -> its parent's, from /proc or else from ps; empty if there is neither."""
    if Path("/proc/self/stat").exists():
        return {pid: int(stat[1]) for pid in _processes() if (stat := _stat(pid))}
    try:
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    return {int(child): int(above) for child, above in (line.split() for line in listed.splitlines())}


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
