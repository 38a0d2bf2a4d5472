"""The contract of a federated method: all that the engines call, and all that they know of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.core import Batches, Message, State, Weights
from fedvote.errors import ConfigError
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.registry import named
from fedvote.training.optimizer import ELEMENTWISE, optimizer_of
from fedvote.wire import Wire

Objective = TypeVar("Objective", bound=Callable[..., Tensor])


def layerwise(objective: Objective) -> Objective:
    """Mark an objective that takes its weights as vectors, and also as sequences of one tensor per layer.

    Training then hands it whichever is faster. An objective without the mark gets vectors.
    """
    objective.layerwise = True  # type: ignore[attr-defined]
    return objective


class Merge(ABC):
    """The messages of a round on their way into the next state: a fold, so that messages need not be kept."""

    @abstractmethod
    def add(self, ups: Message, clients: Sequence[int]) -> None:
        """Take in the messages of these clients, K in front; one at a time, or many."""

    @abstractmethod
    def close(self) -> State:
        """The next state, from all messages so far. More may be added afterwards, and the round closed again."""


class AllAtOnce(Merge):
    """For a method or rule that compares messages: keeps them all, and merges them when the round closes."""

    def __init__(self, merge: Callable[[Message, list[int]], State]):
        """`merge`: the stacked messages and their clients, in ascending order -> the next state."""
        self._merge = merge
        self._parts: list[Message] = []
        self._clients: list[int] = []

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        self._parts.append(ups)
        self._clients += clients

    def close(self) -> State:
        first, *others = self._parts
        ups = {name: torch.cat([part[name] for part in self._parts]) for name in first} if others else first
        order = sorted(range(len(self._clients)), key=self._clients.__getitem__)
        if order != list(range(len(order))):
            ups = {name: rows[order] for name, rows in ups.items()}
        return self._merge(ups, [self._clients[row] for row in order])


@dataclass(frozen=True)
class Method(ABC):
    """A federated method: hyperparameters as fields, behaviour as pure functions. Both engines drive it unchanged."""

    lr: float = 0.03  # the local learning rate, eta
    optimizer: str = "Adam"  # of torch.optim, made new each round; it must work element by element
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)  # momentum, betas, ..., as torch names them

    def __post_init__(self) -> None:
        for slot in fields(self):
            if "registry" in slot.metadata:  # so that reputation="camps" works in a program, too
                part = named(slot.metadata["registry"], getattr(self, slot.name), slot.name)
                object.__setattr__(self, slot.name, part)
        contracts.check_choices(self)
        if not isinstance(self.lr, int | float) or not 0 < self.lr < math.inf:
            raise ConfigError(f"lr is {self.lr!r}, expected a finite number above 0")
        if self.optimizer_options or self.optimizer not in ELEMENTWISE:  # refuse now what would fail in round 1
            optimizer_of(self).make([torch.zeros(1, requires_grad=True)])  # only then, as it loads torch._dynamo

    @abstractmethod
    def init(self, network: Network, clients: int) -> State:
        """The server's state before round 1, for N clients; `network.start` has the weights that the seed makes.

        A method that weighs clients keeps their shares of the last round as `vote_weight` (N,).
        """

    @abstractmethod
    def broadcast(self, state: State) -> Message:
        """What the server sends to every client of the round."""

    @abstractmethod
    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        """One round of local training for a stack of K clients: their messages and new memories, K in front."""

    @abstractmethod
    def merge(self, state: State, key: Key) -> Merge:
        """How the messages of the round become the next state: a fold, or `AllAtOnce`."""

    @abstractmethod
    def models(self, state: State) -> dict[str, Weights]:
        """`deployed`, the model for a device, and `float`, the model that training continues from; may be the same."""

    @abstractmethod
    def wire(self, network: Network) -> Wire:
        """How messages are coded, in both directions."""

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        """The loss of one client: (*weights, x_B, y_B) -> (), where `weights` are what `descend` was given to train.

        A function of its arguments alone: on a GPU it is recorded once, and replayed.
        """
        return network.loss(*weights)

    def memory(self, network: Network) -> State:
        """What one client remembers from round to round, as it is before the client's first."""
        return {}

    def measure(self, before: State, after: State) -> Mapping[str, float]:
        """Numbers to record of a round besides accuracy and bytes, by name, from the states around it."""
        return {}

    def check(self, cohort: int) -> None:
        """Refuse, before anybody trains, rounds of fewer clients than can be merged."""
        return
