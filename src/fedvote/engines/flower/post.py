"""Messages on their way, and whose they are. Replies are attributed by the message they answer, never by their sender:

what Flower says in place of a node that died comes from Flower itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flwr.app import Error, Message
from flwr.serverapp import Grid

from fedvote.core import NotHeldError, WireError
from fedvote.engines.flower.messages import Task, ask, read_answer, size

LONGEST = 200  # characters of what a client says of itself, which is kept in files
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


@dataclass
class Post:
    """The messages of a run, sent and collected through Flower's grid."""

    grid: Grid
    open: dict[str, Errand] = field(default_factory=dict)
    done: dict[str, Errand] = field(default_factory=dict)
    nbytes: int = 0  # of Flower's messages, sent so far

    def send(self, tasks: Sequence[tuple[Task, int]], ttl: float) -> list[int]:
        """Send tasks to nodes; returns the clients whose message is on its way."""
        sent = []
        for task, node in tasks:
            message = ask(task, node, ttl)
            (name,) = [*self.grid.push_messages([message]), ""][:1]
            if name:
                self.open[name] = Errand(task.round, task.client)
                self.nbytes += size(message)
                sent.append(task.client)
        return sent

    def collect(self) -> list[Answer]:
        """What has come back since the last time."""
        if not self.open:
            return []
        answers = []
        for message in self.grid.pull_messages(list(self.open)):
            name = message.metadata.reply_to_message_id
            again = name in self.done
            errand = self.done.get(name) or self.open.pop(name, None)
            if errand is not None:
                self.done[name] = errand
                answers.append(_read(errand, message, again))
        return answers

    def forget(self, before: int) -> None:
        """Answered errands of rounds before this one are of no more use."""
        self.done = {name: errand for name, errand in self.done.items() if errand.round >= before}

    def awaited(self, round: int) -> set[int]:
        """Clients that have a message of this round and did not answer it yet."""
        return {errand.client for errand in self.open.values() if errand.round == round}


def _read(errand: Errand, message: Message, again: bool) -> Answer:
    if message.has_error():
        text, mendable = _fault(message.error)
        not_held = NotHeldError.__name__ in (message.error.reason or "")
        return Answer(errand, None, text, mendable, again, not_held=not_held)
    try:
        return Answer(errand, read_answer(message), again=again, nbytes=size(message))
    except WireError as error:
        return Answer(errand, b"", str(error)[:LONGEST], again=again)


def _fault(error: Error) -> tuple[str, bool]:
    text, mendable = FAULTS.get(error.code, (f"Flower's error {error.code}", False))
    return f"{text} ({error.reason[:LONGEST]})" if error.reason and error.code == 2 else text, mendable
