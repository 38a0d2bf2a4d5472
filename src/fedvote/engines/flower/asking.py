"""Asking clients for their ballots: the broadcast that each gets, its task's lifetime, and retries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedvote.engines.flower.mailbox import Mailbox, SendError
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.server_round import ServerRound
from fedvote.engines.flower.tasks import Task

LIFETIME = 1.5  # of a task, in deadlines: ballots may be a little late, but stale work is dropped soon
MOST_DOUBLINGS = 10  # each failure doubles the lifetime, at most this many times


@dataclass
class Asker:
    """Sends the tasks of a run."""

    mailbox: Mailbox
    problem: Problem
    deadline: float  # seconds
    holders: dict[int, int] = field(default_factory=dict)  # client -> round of its last ballot: it has that broadcast
    other_start: set[int] = field(default_factory=set)  # clients that make another start of the seed than the server

    def ask(self, poll: Poll, round: ServerRound, online: Mapping[int, int]) -> None:
        """Send a task to every client that is online, may still vote, and has no task yet."""
        for client in sorted((poll.askable() & online.keys()) - self.mailbox.awaited(poll.round)):
            broadcast = round.broadcast(self.holders.get(client), client not in self.other_start)
            ttl = time_to_live(self.deadline, poll.failures[client])
            opening = round.opening(client)
            task = Task(self.problem, poll.round, client, broadcast, round.secret(client), opening)
            try:  # to the node with this client's public key alone
                poll.task_bytes += self.mailbox.send(task, online[client], ttl)
                poll.broadcasts.append(len(broadcast) + len(opening))
            except SendError as error:
                poll.note_failure(client, str(error), retry=True)

    def note_late_ballot(self, client: int, round: int) -> None:
        """A client that answers a round after its end has that round's broadcast, unless it has a newer one."""
        self.holders[client] = max(round, self.holders.get(client, 0))

    def lacks_reference(self, client: int) -> bool:
        """Send this client broadcasts that build on less; False if its last one built on nothing.

        Without its last broadcast it is sent the whole one. If it cannot read that, its seed makes another start.
        """
        if self.holders.pop(client, None) is not None:
            return True
        was_known = client in self.other_start
        self.other_start.add(client)
        return not was_known


def time_to_live(deadline: float, failures: int) -> float:
    """Seconds that a task lives, by the client's number of failures in this round."""
    return float(LIFETIME * deadline * 2.0 ** min(failures, MOST_DOUBLINGS))
