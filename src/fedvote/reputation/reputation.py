"""What a reputation rule is: ballots and what is remembered of their senders -> vote weights and a new memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import State
from fedvote.quantize import Alphabet
from fedvote.randomness import Key


@dataclass(frozen=True)
class Ballots:
    """All that a rule may see: this round's votes, who sent them, and the soft vote they started from."""

    votes_KD: Tensor
    clients_K: Tensor
    soft_D: Tensor
    alphabet: Alphabet


@dataclass(frozen=True)
class Verdict:
    """What a rule decides; only ratios of weights matter."""

    soft_K: Tensor  # each ballot's weight in the soft vote, which training goes on with
    hard_K: Tensor  # each ballot's weight in the plurality, which is deployed
    memory: State  # what the rule remembers for the next round


@dataclass(frozen=True)
class Reputation(ABC):
    def init(self, clients: int) -> State:
        """What is remembered of N clients before the first round; each tensor has N in front."""
        return {}

    @abstractmethod
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict: ...

    def heads(self, ballots: Ballots) -> Tensor:
        """One client, one vote."""
        return torch.ones(len(ballots.votes_KD), device=ballots.votes_KD.device)


def check_verdict(rule: Reputation, verdict: object, K: int, memory: State) -> None:
    """Refuse what no votes can be counted by: rules may be a user's own."""
    if not isinstance(verdict, Verdict):
        contracts.refuse(rule, "judge", contracts.kind(verdict), "a Verdict")
    for name, weights_K in (("soft_K", verdict.soft_K), ("hard_K", verdict.hard_K)):
        if not isinstance(weights_K, Tensor) or weights_K.shape != (K,):
            found = getattr(weights_K, "shape", None)
            shape = contracts.kind(weights_K) if found is None else f"shape {tuple(found)}"
            contracts.refuse(rule, "judge", f"{name} of {shape}", f"a tensor of shape ({K},)")
        least, total = float(weights_K.min()), float(weights_K.sum())
        if not (least >= 0 and 0 < total < float("inf")):
            found = f"{name} from {least:g} that adds up to {total:g}"
            contracts.refuse(rule, "judge", found, "none below 0, and more than nothing in all")
    contracts.like(rule, "judge", verdict.memory, memory)
