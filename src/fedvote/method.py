"""The contract of a federated method: everything that engines know about a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from fedvote.core import Batches, Message, State, Weights
from fedvote.errors import ConfigError
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.settings import Settings, check_above_zero
from fedvote.training.optimizer import ELEMENTWISE, optimizer_of
from fedvote.wire import Wire

Objective = TypeVar("Objective", bound=Callable[..., Tensor])


def layerwise(objective: Objective) -> Objective:
    """Mark an objective that accepts weights as vectors and as sequences of one tensor per layer.

    Training passes the faster of the two. An objective without the mark gets vectors.
    """
    objective.layerwise = True  # type: ignore[attr-defined]
    return objective


class Merge(ABC):
    """A fold over the messages of a round that ends in the next state. It need not keep the messages."""

    setting_without_draws: str = ""
    """The setting that avoids drawing clients' rounding numbers on the server; empty: the merge does not draw them."""

    @abstractmethod
    def add(self, ups: Message, clients: Sequence[int]) -> None:
        """Add the messages of one or more clients. Each tensor has K rows, one per client."""

    def add_sums(self, sums: Message, clients: Sequence[int]) -> None:
        """Add the sums over these clients' messages, in place of the messages.

        `sums` has the names of `Wire.summed`, each (S, count): the sums of `Codec.to_whole_numbers`. Optional.
        """
        raise ConfigError(f"{type(self).__name__} needs each message: sums are not enough")

    def add_late(self, ups: Message, clients: Sequence[int], weight: float, state: State, key: Key) -> None:
        """Add messages of an earlier round, with this weight; `state` and `key`: the ones that round began with.

        Optional: a merge without it takes no late messages.
        """
        raise NotImplementedError

    @abstractmethod
    def close(self) -> State:
        """The next state, from all messages so far. More may be added later, and `close` called again."""


class AllAtOnce(Merge):
    """Keeps all messages and merges them when the round closes: for methods and rules that compare messages."""

    def __init__(self, merge: Callable[[Message, list[int]], State]):
        """`merge`: (stacked messages, their clients in ascending order) -> the next state."""
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
class Method(Settings, ABC):
    """A federated method: hyperparameters as fields, behaviour as pure functions. Both engines drive it unchanged."""

    float_only: ClassVar[bool] = False  # whether the method keeps all weights as floats: it can train any network
    keeps_frozen: ClassVar[bool] = False  # whether weights that the user froze stay as they are, and are not sent
    trains_float: ClassVar[bool] = True  # whether float weights train and travel
    is_private: ClassVar[bool] = False  # whether clients add noise to votes, and `measure` accounts for it

    lr: float = 0.03  # the local learning rate, eta
    optimizer: str = "Adam"  # of torch.optim; new in every round; must work element by element
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)  # momentum, betas, ... in torch's names

    explains: ClassVar[Mapping[str, str]] = {}  # each number of `measure` -> "Its name: a sentence", for reports

    def __post_init__(self) -> None:
        check_above_zero(self, "lr")
        if self.optimizer_options or self.optimizer not in ELEMENTWISE:  # fail now rather than in round 1
            optimizer_of(self).make([torch.zeros(1, requires_grad=True)])  # slow: it loads torch._dynamo

    @abstractmethod
    def init(self, network: Network, clients: int) -> State:
        """The server's state before round 1, for N clients. `network.start` has the seed's weights.

        A method that weighs clients keeps their shares in the last round as `vote_weight` (N,).
        """

    @abstractmethod
    def broadcast(self, state: State) -> Message:
        """The message from the server to every client of the round."""

    @abstractmethod
    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        """One round of local training for K clients: their messages and new memories, each tensor with K rows."""

    @abstractmethod
    def merge(self, state: State, key: Key) -> Merge:
        """An empty merge, which turns the messages of the round into the next state."""

    @abstractmethod
    def models(self, state: State) -> dict[str, Weights]:
        """`deployed`: the model for a device; `float`: the model that training continues from. May be the same.

        WireError for a state that no round can have made: it may come from a file.
        """

    @abstractmethod
    def wire(self, network: Network) -> Wire:
        """The codecs of messages in both directions."""

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        """The loss of one client, one number: `weights` are the tensors that `descend` trains, then x_B and y_B.

        It must depend on its arguments alone: a GPU records it once and replays it.
        """
        return network.loss(*weights)

    def memory(self, network: Network) -> State:
        """One client's memory before its first round. `local` updates it from round to round."""
        return {}

    def measure(self, before: State, after: State) -> Mapping[str, float]:
        """Metrics of a round by name, besides accuracy and bytes, from the states before and after it."""
        return {}

    def check(self, cohort: int) -> None:
        """Raise ConfigError, before any training, if rounds of `cohort` clients are too small to merge."""
        return
