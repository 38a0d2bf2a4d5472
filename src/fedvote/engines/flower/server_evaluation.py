"""Evaluation by clients: the server has no examples, asks all clients that are online, and adds up their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from flwr.app import MessageType

from fedvote.core import State
from fedvote.engines.flower.mailbox import Mailbox, SendError
from fedvote.engines.flower.pooled_evaluation import (
    EXAMPLES,
    LOSS,
    RIGHT,
    RIGHT_CALIBRATED,
    STATE,
    STATISTICS,
    check_answer,
    expected_statistics,
    needed,
    part,
    pooled_quality,
    pooled_statistics,
    read,
    write,
)
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.replies import Ballot, Refusal
from fedvote.engines.flower.tasks import Task
from fedvote.errors import WireError
from fedvote.federation import Federation
from fedvote.plan import FlowerOptions


@dataclass
class Jury:
    """The clients as judges. `statistics`: of the deployed model, as they measured them last."""

    federation: Federation
    problem: Problem
    mailbox: Mailbox
    rules: FlowerOptions
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    statistics: State | None = field(default=None, init=False)
    nbytes: int = field(default=0, init=False)  # of Flower's messages in both directions, in the last evaluation

    def judge(self, state: State, round: int, online: Mapping[int, int]) -> dict[str, Any]:
        """The metrics of a state on the clients' held-out examples; empty if nobody has any."""
        method, network = self.federation.method, self.federation.network
        models, request = list(method.models(state)), {STATE + n: v for n, v in needed(method, state).items()}
        expected = expected_statistics(network, models)
        pooled: State = {}
        self.nbytes = 0
        if network.norms:
            answers = [answer for answer in self._ask(request, round, online, expected) if int(answer[EXAMPLES])]
            if not answers:
                return {}
            pooled = pooled_statistics(answers)
        self.statistics = part(pooled, "deployed/")
        numbers = {f"{model}/{what}": () for model in models for what in (RIGHT, RIGHT_CALIBRATED, LOSS)}
        request |= {STATISTICS + name: value for name, value in pooled.items()}
        answers = [answer for answer in self._ask(request, round, online, numbers) if int(answer[EXAMPLES])]
        return pooled_quality(answers, models) | {"evaluation_bytes": self.nbytes} if answers else {}

    def _ask(
        self, request: State, round: int, online: Mapping[int, int], expected: Mapping[str, tuple[int, ...]]
    ) -> list[State]:
        """The valid answers of the clients: of all, or of those that answered within the grace after the last."""
        payload, began, answers = write(request), self.clock(), list[State]()
        asked = sum(self._send(payload, round, client, node) for client, node in sorted(online.items()))
        heard, heard_at = 0, began
        while heard < asked and self.clock() - began < self.rules.deadline:
            replies = [reply for reply in self.mailbox.collect() if reply.request.round == round and not reply.repeated]
            self.nbytes += sum(reply.nbytes for reply in replies)
            lacking = [r.request for r in replies if r.outcome == Refusal("no-problem") and not r.request.whole]
            asked += sum(self._send(payload, round, request.client, request.node) for request in lacking)
            heard, heard_at = heard + len(replies), self.clock() if replies else heard_at
            answers += [answer for reply in replies if (answer := self._read(reply.outcome, expected)) is not None]
            if len(answers) >= self.rules.minimum * asked and self.clock() - heard_at >= self.rules.grace:
                break
            if not replies:
                self.sleep(self.rules.poll)
        self.mailbox.forget()  # an answer that comes later is of no use
        return answers

    def _send(self, payload: bytes, round: int, client: int, node: int) -> bool:
        """Send a request to one client; False if it could not be sent."""
        task = Task(self.problem, round, client, payload)
        try:
            self.nbytes += self.mailbox.send(task, node, self.rules.deadline, MessageType.EVALUATE)
        except SendError:
            return False
        return True

    def _read(self, outcome: Any, expected: Mapping[str, tuple[int, ...]]) -> State | None:
        """The answer in a reply; None if it is none."""
        if not isinstance(outcome, Ballot):
            return None
        try:
            answer = read(outcome.frame, self.mailbox.limit)
            check_answer(answer, expected)
        except WireError:
            return None
        return answer
