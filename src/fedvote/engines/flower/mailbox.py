"""Messages on their way, and whose they are.

A reply is whose message was asked about, whatever it says of itself: what Flower says in place of a node that died
comes from Flower, and what a client sends is the client's to make up. Every reply is pulled in a thread of its own, so
that one that is announced and never comes, or that cannot be read, is one client's loss and nobody else's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
from flwr.app import Error, Message
from flwr.serverapp import Grid

from fedvote.engines.flower.inflation import at_most
from fedvote.engines.flower.messages import Task, ask, read_answer, size
from fedvote.errors import NoReferenceError, WireError, reason

LONGEST = 200  # characters of what a client says of itself, which is kept in files
AT_ONCE = 64  # replies that are looked for at a time; others wait for their turn
LONG = 5.0  # seconds that a look waits for replies which are there, but not yet read
FAULTS = {  # Flower's error code: what it means, and whether asking again may help
    1: ("its app cannot be loaded", False),
    2: ("its code raised", False),
    3: ("it did not answer in time", True),
    4: ("its answer was lost", True),
    5: ("its node went away", True),
    7: ("it does not trust the app", False),
    8: ("its process died", True),
}


@dataclass(frozen=True)
class Errand:
    """One message on its way: to which client, in which round."""

    round: int
    client: int


@dataclass(frozen=True)
class Answer:
    """What came back of an errand: a frame, or what went wrong."""

    errand: Errand
    frame: bytes | None
    fault: str = ""
    mendable: bool = False  # whether asking again may help
    again: bool = False  # whether this errand was answered before
    nbytes: int = 0  # of Flower's message
    not_held: bool = False  # whether it says that it does not hold what its broadcast builds on


class Pull:
    """One look for one reply, of no more than so many bytes."""

    def __init__(self, grid: Grid, name: str, most: int):
        self.grid, self.name, self.most = grid, name, most
        self.messages: list[Message] = []
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)  # of which nobody waits for the end
        self._thread.start()

    def _run(self) -> None:
        try:
            with at_most(self.most):
                self.messages = list(self.grid.pull_messages([self.name]))
        except Exception as error:
            self.error = error

    def over(self, until: float) -> bool:
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()


@dataclass
class Post:
    """The messages of a run, sent and collected through Flower's grid."""

    grid: Grid
    most: int  # bytes that the frame in a reply may have
    open: dict[str, Errand] = field(default_factory=dict)
    pulls: dict[str, Pull] = field(default_factory=dict)  # looks that are not over
    nbytes: int = 0  # of Flower's messages, sent so far

    def send(self, tasks: Sequence[tuple[Task, int, float]]) -> list[int]:
        """Send tasks to nodes, each to be answered within so many seconds; returns whose message is on its way."""
        sent = []
        for task, node, ttl in tasks:
            message = ask(task, node, ttl)
            (name,) = [*self.grid.push_messages([message]), ""][:1]
            if name:
                self.open[name] = Errand(task.round, task.client)
                self.nbytes += size(message)
                sent.append(task.client)
        return sent

    def collect(self) -> list[Answer]:
        """What has come back since the last time."""
        names = [name for name in self.open if name not in self.pulls][:AT_ONCE]
        for name in names:
            self.pulls[name] = Pull(self.grid, name, self.most)
            self.open[name] = self.open.pop(name)  # to the end of the queue
        until = time.monotonic() + LONG
        over = [pull for name in names if (pull := self.pulls[name]).over(until)]
        over += [pull for name, pull in self.pulls.items() if name not in names and pull.over(0)]
        return [answer for pull in over for answer in self._read(pull)]

    def _read(self, pull: Pull) -> list[Answer]:
        """The first message is the answer, others are once more."""
        del self.pulls[pull.name]
        if isinstance(pull.error, httpx.HTTPError | OSError):
            raise pull.error  # it is not the client's
        if not pull.messages and pull.error is None:
            return []
        errand = self.open.pop(pull.name)
        if pull.error is not None:
            return [Answer(errand, b"", f"its answer cannot be read ({_quoted(reason(pull.error))})")]
        return [_read(errand, message, again=index > 0) for index, message in enumerate(pull.messages)]

    def awaited(self, round: int) -> set[int]:
        """Clients that have a message of this round and did not answer it yet."""
        return {errand.client for errand in self.open.values() if errand.round == round}


def _read(errand: Errand, message: Message, again: bool) -> Answer:
    if message.has_error():
        text, mendable = _fault(message.error)
        not_held = NoReferenceError.__name__ in (message.error.reason or "")
        return Answer(errand, None, text, mendable, again, not_held=not_held)
    try:
        return Answer(errand, read_answer(message), again=again, nbytes=size(message))
    except WireError as error:
        return Answer(errand, b"", _quoted(str(error)), again=again)


def _fault(error: Error) -> tuple[str, bool]:
    text, mendable = FAULTS.get(error.code, (f"Flower's error {error.code}", False))
    return f"{text} ({_quoted(error.reason)})" if error.reason and error.code == 2 else text, mendable


def _quoted(text: str) -> str:
    """What a client says, such that it can be printed: nothing that a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:LONGEST])
