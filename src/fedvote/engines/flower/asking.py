"""Asking clients for their ballots: which broadcast each gets, how long its task lives, and who is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fedvote.engines.flower.mailbox import Mailbox
from fedvote.engines.flower.poll import Poll
from fedvote.engines.flower.server_round import ServerRound
from fedvote.engines.flower.tasks import Problem, Task

LIFETIME = 1.5  # deadlines that a task lives: a ballot may be a little late, and stale work is soon dropped
MOST_DOUBLINGS = 10  # each failure doubles the lifetime, up to so many times


@dataclass
class Asker:
    """Sends the tasks of a run."""

    mailbox: Mailbox
    problem: Problem
    deadline: float  # seconds
    holders: set[int] = field(default_factory=set)  # clients that have the last broadcast: their ballots counted

    def ask(self, poll: Poll, round: ServerRound, online: Mapping[int, int]) -> None:
        """Send a task to every client that is online, may still vote, and has none yet."""
        for client in sorted((poll.askable() & online.keys()) - self.mailbox.awaited(poll.round)):
            broadcast = round.broadcast(client in self.holders)
            ttl = time_to_live(self.deadline, poll.failures[client])
            nbytes = self.mailbox.send(Task(self.problem, poll.round, client, broadcast), online[client], ttl)
            if nbytes:
                poll.broadcasts.append(len(broadcast))
                poll.task_bytes += nbytes

    def lacks_reference(self, client: int) -> bool:
        """Send this client the whole broadcast from now on; False if it was sent the whole one before."""
        was_holder = client in self.holders
        self.holders.discard(client)
        return was_holder


def time_to_live(deadline: float, failures: int) -> float:
    """Seconds that a task waits for its answer, after so many failures of the client in this round."""
    return float(LIFETIME * deadline * 2.0 ** min(failures, MOST_DOUBLINGS))
