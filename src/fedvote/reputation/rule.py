"""What a reputation rule is: ballots and what is remembered of their senders -> vote weights and a new memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.core import Key, State
from fedvote.quantize import Alphabet


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
