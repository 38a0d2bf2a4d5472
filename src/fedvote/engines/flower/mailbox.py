"""Tasks that are on their way, and the replies to them.

A reply belongs to the client whose task it answers, whatever the reply says of its sender: Flower itself replies in
place of a node that died, and a hostile client may write anything. Each reply is fetched and read in a thread of its
own. So one that never arrives, or cannot be read, costs one client's vote and does not hold up the others.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from flwr.app import Message
from flwr.serverapp import Grid

from fedvote.engines.flower.array_limit import at_most
from fedvote.engines.flower.flower_internals import CONNECTION_ERRORS, message_nbytes
from fedvote.engines.flower.replies import Failure, Malformed, Outcome, printable, read_outcome
from fedvote.engines.flower.tasks import Task, task_message
from fedvote.errors import reason

FETCHES = 64  # replies that are looked for at a time; the others wait for their turn
FETCH_SECONDS = 5.0  # how long `collect` waits for replies that have begun to arrive


@dataclass(frozen=True)
class Request:
    """A task on its way, or answered: to which client, in which round."""

    round: int
    client: int


@dataclass(frozen=True)
class Reply:
    """What came back for a request."""

    request: Request
    outcome: Outcome
    repeated: bool = False  # whether the request was answered before
    nbytes: int = 0  # of Flower's message


class Fetch:
    """Looks once for the replies to one message, in a thread of its own."""

    def __init__(self, grid: Grid, message_id: str, limit: int):
        self.message_id = message_id
        self.found: list[tuple[Outcome, int]] = []  # with the bytes of Flower's message
        self.connection_error: Exception | None = None
        self._grid, self._limit = grid, limit
        self._thread = threading.Thread(target=self._run, daemon=True)  # it may never end, and holds up nobody
        self._thread.start()

    def _run(self) -> None:
        try:
            with at_most(self._limit):
                self.found = [_read(message) for message in self._grid.pull_messages([self.message_id])]
        except CONNECTION_ERRORS as error:
            self.connection_error = error
        except Exception as error:  # Flower and Python raise anything, if a client sends anything
            self.found = [(Malformed(f"its answer cannot be read ({printable(reason(error))})"), 0)]

    def done(self, until: float) -> bool:
        """Whether it has ended, after waiting for it until this time."""
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()


@dataclass
class Mailbox:
    """Sends the tasks of a run through Flower's grid, and collects the replies."""

    grid: Grid
    limit: int  # bytes that the arrays of one reply may have
    requests: dict[str, Request] = field(default_factory=dict)  # message id -> request, of those not answered yet
    fetches: dict[str, Fetch] = field(default_factory=dict)  # message id -> fetch, of those that have not ended

    def send(self, task: Task, node: int, ttl: float) -> int:
        """Send a task that lives for `ttl` seconds; returns its message's bytes, or 0 if Flower did not take it."""
        message = task_message(task, node, ttl)
        message_ids = list(self.grid.push_messages([message]))
        if not message_ids or not message_ids[0]:
            return 0
        self.requests[message_ids[0]] = Request(task.round, task.client)
        return message_nbytes(message)

    def collect(self) -> list[Reply]:
        """The replies that came since the last call."""
        new = [message_id for message_id in self.requests if message_id not in self.fetches][:FETCHES]
        for message_id in new:
            self.fetches[message_id] = Fetch(self.grid, message_id, self.limit)
            self.requests[message_id] = self.requests.pop(message_id)  # to the end of the queue
        until = time.monotonic() + FETCH_SECONDS
        done = [fetch for message_id in new if (fetch := self.fetches[message_id]).done(until)]
        done += [fetch for message_id, fetch in self.fetches.items() if message_id not in new and fetch.done(0)]
        return [reply for fetch in done for reply in self._replies(fetch)]

    def awaited(self, round: int) -> set[int]:
        """Clients that have not answered their task of this round yet."""
        return {request.client for request in self.requests.values() if request.round == round}

    def _replies(self, fetch: Fetch) -> list[Reply]:
        """What a fetch found: the first message is the reply, more of them are repeated."""
        del self.fetches[fetch.message_id]
        if fetch.connection_error is not None:
            raise fetch.connection_error
        if not fetch.found:
            return []
        request = self.requests.pop(fetch.message_id)
        return [Reply(request, outcome, index > 0, nbytes) for index, (outcome, nbytes) in enumerate(fetch.found)]


def _read(message: Message) -> tuple[Outcome, int]:
    outcome = read_outcome(message)
    return outcome, 0 if isinstance(outcome, Failure | Malformed) else message_nbytes(message)
