"""The contract of a reputation rule: ballots and a memory of their senders -> vote weights and a new memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import State
from fedvote.packed import Packed, unpack, votes_at
from fedvote.quantize import Alphabet
from fedvote.randomness import Key
from fedvote.settings import Settings

MEMORY = "reputation/"  # prefix of the state tensors that are a rule's memory


@dataclass(frozen=True, eq=False)
class Ballots:
    """All that a rule may see: the round's votes, their senders, the soft vote that was broadcast, and the layers.

    Many ballots are packed, a bit a vote. `rows` and `row_at` unpack a few at a time, `votes_KD` all: a byte a vote.
    """

    votes: Tensor | Packed  # (K, D)
    clients_K: Tensor
    soft_D: Tensor
    alphabet: Alphabet
    layers: tuple[int, ...] = ()  # number of votes in each layer; empty unless the rule has `by_layer`

    def __len__(self) -> int:
        return len(self.votes)

    @property
    def weights(self) -> int:
        """D, the number of voted weights."""
        return self.votes.count if isinstance(self.votes, Packed) else self.votes.shape[1]

    @property
    def device(self) -> torch.device:
        return self.clients_K.device

    @property
    def votes_KD(self) -> Tensor:
        return unpack(self.votes) if isinstance(self.votes, Packed) else self.votes

    def rows(self) -> Iterator[Tensor]:
        """The ballots one by one."""
        for k in range(len(self)):
            yield unpack(self.votes.row(k))[0] if isinstance(self.votes, Packed) else self.votes[k]

    def row_at(self, k: int, places_n: Tensor) -> Tensor:
        """(n,) the votes of one ballot on some weights."""
        return votes_at(self.votes.row(k), places_n)[0] if isinstance(self.votes, Packed) else self.votes[k, places_n]


@dataclass(frozen=True, eq=False)
class Verdict:
    """The decision of a rule. Only the ratios of weights matter. If both are all 0, the soft vote stays as it was."""

    soft_K: Tensor  # each ballot's weight in the soft vote, from which training continues
    hard_K: Tensor  # each ballot's weight in the plurality, which is deployed
    memory: State  # for the next round


@dataclass(frozen=True)
class Reputation(Settings, ABC):
    by_layer: ClassVar[bool] = False  # whether it needs the sizes of the layers
    fewest: ClassVar[int] = 1  # ballots of a round, from which on it can leave out a forged one

    @property
    def fewest_for_labels(self) -> int:
        """Ballots of a round, from which on it can leave out wrong labels; 0: it does not look for them."""
        return 0

    @property
    def trusted_clients(self) -> tuple[int, ...]:
        """Clients whom the operator knows to be honest: a simulation draws no attackers among them."""
        return ()

    def init(self, clients: int) -> State:
        """The memory before round 1; each tensor has N rows, one per client."""
        return {}

    @abstractmethod
    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        """The weights of a round's ballots, and the next memory, with the names and shapes of `init`."""

    def reasons(self, before: State, after: State, left_out: Sequence[int]) -> dict[int, str]:
        """Why the round between these two memories gave these clients no weight: client -> a clause for people."""
        return dict.fromkeys(left_out, f"{type(self).__name__} gave the ballot no weight")

    def doubts(self, hostile: int, classes: int) -> Sequence[str]:
        """A sentence for every setting that does not fit so many hostile clients, or so many classes of the data.

        `classes` is 0 where targets are no classes.
        """
        return ()

    def heads(self, ballots: Ballots) -> Tensor:
        """(K,) ones: one client, one vote."""
        return torch.ones(len(ballots), device=ballots.device)


def memory_in(state: State) -> State:
    """The rule's memory in the state of a method."""
    return {name.removeprefix(MEMORY): state[name] for name in state if name.startswith(MEMORY)}


def check_verdict(rule: Reputation, verdict: object, K: int, memory: State) -> None:
    """Raise ConfigError if a verdict cannot weigh votes: the rule may be a user's own."""
    if not isinstance(verdict, Verdict):
        contracts.refuse(rule, "judge", contracts.kind(verdict), "a Verdict")
    for name, weights_K in (("soft_K", verdict.soft_K), ("hard_K", verdict.hard_K)):
        if not isinstance(weights_K, Tensor) or weights_K.shape != (K,):
            found = getattr(weights_K, "shape", None)
            shape = contracts.kind(weights_K) if found is None else f"shape {tuple(found)}"
            contracts.refuse(rule, "judge", f"{name} of {shape}", f"a tensor of shape ({K},)")
        least, total = float(weights_K.min()), float(weights_K.sum())
        if not (least >= 0 and total < float("inf")):
            found = f"{name} from {least:g} that adds up to {total:g}"
            contracts.refuse(rule, "judge", found, "none below 0, and a finite sum")
    if bool(verdict.soft_K.any()) != bool(verdict.hard_K.any()):
        contracts.refuse(rule, "judge", "weights for soft_K or hard_K alone", "weights for both, or for neither")
    contracts.like(rule, "judge", verdict.memory, memory)
