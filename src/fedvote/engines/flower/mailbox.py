"""The mailbox: it sends tasks, and collects the replies.

A reply belongs to the client whose task it answers, whatever it says about its sender: Flower itself replies for a
node that died, and a hostile client may write anything. Each reply is fetched and read in its own thread. So a reply
that never arrives, or cannot be read, costs one client's vote and does not delay the others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from fedvote.engines.flower.array_limit import at_most
from fedvote.engines.flower.flower_internals import CONNECTION_ERRORS, message_nbytes
from fedvote.engines.flower.replies import Ballot, Failure, Malformed, Outcome, Refusal, printable, read_outcome
from fedvote.engines.flower.tasks import Task, task_message
from fedvote.errors import reason

FETCHES = 64  # replies to look for at a time; the others wait for their turn
LOST_SECONDS = 60.0  # of errors of the connection, after which the run ends; Flower may retry by itself before
SIGNAL_SECONDS = 0.5  # between two chances to hear a signal while a task is sent
FETCH_SECONDS = 5.0  # how long `collect` waits for replies that have begun to arrive


class SendError(Exception):
    """A task that was not sent, and why."""


@dataclass(frozen=True)
class Request:
    """The client and round of a task that was sent, the node that got it, and whether it got the whole problem."""

    round: int
    client: int
    node: int = 0
    whole: bool = True


@dataclass(frozen=True)
class Reply:
    """The reply to a request."""

    request: Request
    outcome: Outcome
    repeated: bool = False  # whether the request was answered before
    nbytes: int = 0  # of Flower's message


class Fetch:
    """Looks once for the replies to one message, in its own thread."""

    def __init__(self, grid: Grid, message_id: str, limit: int):
        self.message_id = message_id
        self.found: list[tuple[Outcome, int]] = []  # with the bytes of Flower's message
        self.connection_error: Exception | None = None
        self._grid, self._limit = grid, limit
        self._thread = threading.Thread(target=self._run, daemon=True)  # a daemon: it may never end
        self._thread.start()

    def _run(self) -> None:
        try:
            with at_most(self._limit):
                self.found = [_read(message) for message in self._grid.pull_messages([self.message_id])]
        except CONNECTION_ERRORS as error:
            self.connection_error = error
        except Exception as error:  # a client may send anything, so Flower and Python may raise anything
            self.found = [(Malformed(f"its answer cannot be read ({printable(reason(error))})"), 0)]

    def done(self, until: float) -> bool:
        """Wait until this time at most; returns whether the fetch has ended."""
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()


@dataclass
class Mailbox:
    """Sends the tasks of a run through Flower's grid, and collects the replies."""

    grid: Grid
    limit: int  # most bytes of the arrays of one reply
    requests: dict[str, Request] = field(default_factory=dict)  # message id -> request that is not answered yet
    fetches: dict[str, Fetch] = field(default_factory=dict)  # message id -> fetch that has not ended
    informed: set[int] = field(default_factory=set)  # nodes that hold the problem: they are sent its digest
    lost_since: float | None = None  # when the SuperLink was first out of reach; None: it answers

    def send(self, task: Task, node: int, ttl: float, kind: str = MessageType.TRAIN) -> int:
        """Send a task that lives for `ttl` seconds; returns the bytes of its message. SendError if it was not sent."""
        whole = node not in self.informed
        message = task_message(task, node, ttl, kind, whole)
        try:
            message_ids = _push(self.grid, message)
        except Exception as error:  # of Flower, of the connection, of the node's record: it concerns this client alone
            raise SendError(f"its task could not be sent ({printable(reason(error))})") from error
        if not message_ids or not message_ids[0]:
            raise SendError("Flower did not take its task")
        self.requests[message_ids[0]] = Request(task.round, task.client, node, whole)
        return message_nbytes(message)

    def collect(self) -> list[Reply]:
        """The replies since the last call."""
        new = [message_id for message_id in self.requests if message_id not in self.fetches][:FETCHES]
        for message_id in new:
            self.fetches[message_id] = Fetch(self.grid, message_id, self.limit)
            self.requests[message_id] = self.requests.pop(message_id)  # to the end of the queue
        until = time.monotonic() + FETCH_SECONDS
        done = [fetch for message_id in new if (fetch := self.fetches[message_id]).done(until)]
        done += [fetch for message_id, fetch in self.fetches.items() if message_id not in new and fetch.done(0)]
        return [reply for fetch in done for reply in self._replies(fetch)]

    def forget(self) -> None:
        """Wait for no reply any more; replies that still come are dropped."""
        self.requests.clear()
        self.fetches.clear()

    def awaited(self, round: int) -> set[int]:
        """Clients that have not answered their task of this round yet."""
        return {request.client for request in self.requests.values() if request.round == round}

    def _replies(self, fetch: Fetch) -> list[Reply]:
        """The replies that a fetch found; all but the first are marked as repeated."""
        del self.fetches[fetch.message_id]
        self._note_connection(fetch.connection_error)
        if not fetch.found:
            return []
        request = self.requests.pop(fetch.message_id)
        self._note_informed(request.node, fetch.found[0][0])
        return [Reply(request, outcome, index > 0, nbytes) for index, (outcome, nbytes) in enumerate(fetch.found)]

    def _note_informed(self, node: int, outcome: Outcome) -> None:
        """A client that took its task holds the problem. Otherwise nobody knows, and it is sent the whole again."""
        if isinstance(outcome, Ballot) or outcome == Refusal("no-reference"):
            self.informed.add(node)
        else:
            self.informed.discard(node)

    def _note_connection(self, error: Exception | None) -> None:
        """Raise the error if nothing has come through for a while. Until then, the next look may succeed."""
        now = time.monotonic()
        if error is None or self.lost_since is None:
            self.lost_since = None if error is None else now
        elif now - self.lost_since > LOST_SECONDS:
            raise error


def _push(grid: Grid, message: Message) -> list[str]:
    """Send a message; returns its id.

    Flower waits without end for a SuperLink that is gone, and Python hears no signal in such a wait. So the wait is in
    a thread: this program can still be stopped, and does not outlive its SuperLink with the run folder in its hands.
    """
    outcome: list[list[str] | BaseException] = []

    def push() -> None:
        try:
            outcome.append(list(grid.push_messages([message])))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=push, daemon=True)  # a daemon: it may never end
    thread.start()
    while thread.is_alive():
        thread.join(SIGNAL_SECONDS)
    (found,) = outcome
    if isinstance(found, BaseException):
        raise found
    return found


def _read(message: Message) -> tuple[Outcome, int]:
    outcome = read_outcome(message)
    return outcome, 0 if isinstance(outcome, Failure | Malformed) else message_nbytes(message)
