"""Ballots decoded in processes of their own, on every core, while other clients still upload.

The entropy coder holds Python's global lock, so threads would take turns. A process reads the round from a file, once,
and is then sent frames and returns messages. Small ballots are decoded here: sending them takes longer.

A process may die, for example if the system is short of memory: then the pool takes no work. The rest of the round is
decoded here, and the next round starts a new pool.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch

from fedvote.core import State
from fedvote.errors import WireError
from fedvote.rounds import Round
from fedvote.rounds.held import without_held
from fedvote.system.device import repeatable
from fedvote.system.threads import cores
from fedvote.wire import Delivery

Arrays = dict[str, npt.NDArray[Any]]
"""A message as numpy's arrays: torch would pass its tensors through shared memory, a file for each."""

WORTH_IT = 2**17  # weights of a network, from which on a process is faster
FAILURES = (BrokenProcessPool, OSError)  # a process has died, did not start, or cannot read the round


class Decoders:
    """The processes of a run; they are started with the first large ballots, and end with this process."""

    def __init__(self, processes: int | None = None):
        self.processes = processes or cores()
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of the round's file, for this user alone
        self._pool: ProcessPoolExecutor | None = None

    def reader(self, round: Round, state: State) -> Reader:
        """A reader of the round's ballots."""
        if self._pool is not None and not _works(self._pool):
            self.close()
        here = round.network.start.voted.device.type != "cpu" or round.network.D < WORTH_IT or self.processes < 2
        return Reader(round, state, None if here else self._submitter(round, state), 2 * self.processes)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._folder is not None:
            self._folder.cleanup()
        self._pool = self._folder = None

    def _submitter(self, round: Round, state: State) -> Callable[[bytes, int], Future[Arrays | str]]:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="fedvote-round-")
        file = Path(self._folder.name) / f"round-{round.key.round}"
        for old in file.parent.iterdir():
            old.unlink()
        torch.save((round, without_held(state)), file)
        return lambda frame, client: self._started_pool().submit(_read, str(file), frame, client)

    def _started_pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
            self._pool = ProcessPoolExecutor(self.processes, spawn, initializer=_start)
        return self._pool


class Reader:
    """Reads the ballots of one round. `ahead` announces several of them; a call gives one, or raises WireError."""

    def __init__(
        self,
        round: Round,
        state: State,
        submit: Callable[[bytes, int], Future[Arrays | str]] | None = None,
        most: int = 1,
    ):
        """`submit` starts to decode in another process; `most`: ballots that are started and not called for."""
        self._round, self._state, self._submit, self._most = round, state, submit, most
        self._announced: dict[tuple[int, bytes], None] = {}
        self._started: dict[tuple[int, bytes], Future[Arrays | str]] = {}

    def ahead(self, frames: Sequence[tuple[bytes, int]]) -> None:
        """Announce clients' frames, in the order in which they will be read."""
        if self._submit is not None and len(frames) > 1:
            self._announced |= {(client, frame): None for frame, client in frames}
            self._start()

    def __call__(self, frame: bytes, client: int) -> Delivery:
        self._announced.pop((client, frame), None)
        started = self._started.pop((client, frame), None)
        outcome = None if started is None else self._outcome(started)
        if outcome is None:
            with repeatable():
                return self._round.read_ballot(self._state, frame, client)
        if isinstance(outcome, str):
            raise WireError(outcome)
        return Delivery({name: torch.from_numpy(value) for name, value in outcome.items()}, 0, [len(frame)])

    def _outcome(self, started: Future[Arrays | str]) -> Arrays | str | None:
        """The ballot that a process has read, or the reason why it is none; None if the process failed."""
        try:
            outcome = started.result()
        except FAILURES:
            self._submit = None
            return None
        self._start()
        return outcome

    def _start(self) -> None:
        """Start as many announced ballots as may be under way: their results take memory."""
        while self._submit is not None and self._announced and len(self._started) < self._most:
            client, frame = next(iter(self._announced))
            try:
                self._started[client, frame] = self._submit(frame, client)
            except FAILURES:
                self._submit = None
            else:
                del self._announced[client, frame]


def _works(pool: ProcessPoolExecutor) -> bool:
    try:
        pool.submit(int)  # a pool that lost a process refuses all work
    except FAILURES:
        return False
    return True


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends this process
    torch.set_num_threads(1)


@lru_cache(maxsize=1)
def _load(file: str) -> tuple[Round, State]:
    round, state = torch.load(file, weights_only=False)  # written by this run's own server, in a folder of its own
    return round, state


def _read(file: str, frame: bytes, client: int) -> Arrays | str:
    """The ballot in a frame, or the reason why it is none."""
    round, state = _load(file)
    try:
        with repeatable():
            ballot = round.read_ballot(state, frame, client)
            return {name: value.numpy() for name, value in ballot.stack.items()}
    except WireError as error:
        return str(error)
