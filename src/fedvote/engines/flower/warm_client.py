"""A client whose process stays warm: Python, torch, fedvote and the data are loaded once, not once a turn.

Flower starts a new process for each turn of a client, unless its SuperNode runs with `--isolation process`: then
another program asks the SuperNode for tasks. This file is that program. It keeps one worker for the run whose tasks
arrive. The worker imports the app with its first task, and ends when it was idle for a while, or when a task of
another run arrives: two runs never share a process. Tokens go to the worker through a pipe, so that no other user of
the machine sees them in the list of processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedvote.engines.flower.flower_internals import CONNECTION_ERRORS, Acquired, TaskQueue, take_task

KEEP = 600.0  # seconds that an idle worker stays
POLL = 0.5  # seconds between two looks for a task
WORKER = "worker"  # the argument that makes this program a worker
MODULE = "fedvote.engines.flower.warm_client"  # this file, which is also a program


@dataclass
class Dispatcher:
    """Passes the tasks of one SuperNode to a worker process."""

    address: str  # of the SuperNode, on this machine
    keep: float = KEEP
    clock: Callable[[], float] = time.monotonic
    _worker: subprocess.Popen[str] | None = None
    _run: int = 0  # the worker's
    _used: float = 0.0  # when the worker got its last task
    _queue: TaskQueue = field(init=False)

    def __post_init__(self) -> None:
        self._queue = TaskQueue(self.address)

    def serve(self, parent: int) -> None:
        """Pass tasks on until the process `parent`, the SuperNode, has ended."""
        while os.getppid() == parent:
            self.step()
            time.sleep(POLL)
        self.dismiss()

    def step(self) -> None:
        """Pass on a task, if there is one; end a worker that was idle for too long."""
        try:
            task = self._queue.acquire()
        except CONNECTION_ERRORS:
            task = None  # the SuperNode is not ready yet, or ends
        if task is not None:
            self._pass_on(task)
        elif self.clock() - self._used > self.keep:
            self.dismiss()

    def dismiss(self) -> None:
        """End the worker after the task that it is at."""
        if self._worker is not None and self._worker.stdin is not None:
            self._worker.stdin.close()
            self._worker.wait()
        self._worker = None

    def _pass_on(self, task: Acquired) -> None:
        if self._worker is not None and (self._run != task.run or self._worker.poll() is not None):
            self.dismiss()
        if self._worker is None:
            command = [sys.executable, "-m", MODULE, WORKER, self.address]
            self._worker = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, bufsize=1)
        assert self._worker.stdin is not None
        print(task.token, file=self._worker.stdin, flush=True)
        self._run, self._used = task.run, self.clock()


def work(address: str) -> None:
    """Take the tasks whose tokens arrive, a line each, until the pipe is closed."""
    for line in sys.stdin:
        take_task(address, line.strip())


def client(supernode_options: Sequence[str], port: int, keep: float) -> None:
    """Become a SuperNode, with a dispatcher beside it that ends with it."""
    address, bin = f"127.0.0.1:{port}", Path(sys.executable).parent
    subprocess.Popen([sys.executable, "-m", MODULE, address, str(keep), str(os.getpid())])
    supernode = str(bin / "flower-supernode")
    own = ["--isolation", "process", "--host", "127.0.0.1", "--port", str(port)]
    os.execv(supernode, [supernode, *supernode_options, *own])


def main(arguments: Sequence[str]) -> None:
    """WORKER ADDRESS, or ADDRESS SECONDS PARENT."""
    if arguments[0] == WORKER:
        work(arguments[1])
    else:
        Dispatcher(arguments[0], float(arguments[1])).serve(int(arguments[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
