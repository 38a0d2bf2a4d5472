"""The contract of a federated method: what both engines call, and all that they know of it."""

from __future__ import annotations

import functools
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from fedvote.core import Batches, Codec, Message, State, Weights
from fedvote.errors import ConfigError
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.registry import named

if TYPE_CHECKING:
    from fedvote.reputation import Reputation

ELEMENTWISE = (
    "ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD",
)  # fmt: skip
FUSED = ("Adagrad", "Adam", "AdamW", "SGD")  # one pass over the parameters instead of many


Objective = TypeVar("Objective", bound=Callable[..., Tensor])


def layerwise(objective: Objective) -> Objective:
    """Mark an objective that takes voted and float weights not only as vectors, but also as the parts of their layers.

    Where that is faster it is given these. An objective that is not marked gets vectors.
    """
    objective.layerwise = True  # type: ignore[attr-defined]
    return objective


@dataclass(frozen=True)
class Method(ABC):
    """A federated method: hyperparameters as fields, behaviour as pure functions. Both engines drive it unchanged."""

    scales: ClassVar[tuple[str, ...]] = ()  # of a message: what only says how large the rest is, so none compare

    lr: float = 0.03  # the local learning rate, eta
    optimizer: str = "Adam"  # of torch.optim, made new each round; it must work element by element
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)  # momentum, betas, ..., as torch names them

    def __post_init__(self) -> None:
        for slot in fields(self):
            if "registry" in slot.metadata:  # so that reputation="camps" will do in a program, too
                part = named(slot.metadata["registry"], getattr(self, slot.name), slot.name)
                object.__setattr__(self, slot.name, part)
        if not isinstance(self.lr, int | float) or not 0 < self.lr < math.inf:
            raise ConfigError(f"lr is {self.lr!r}, expected a finite number above 0")
        if self.optimizer_options or self.optimizer not in ELEMENTWISE:  # refuse now what would fail in round 1
            self.make_optimizer([torch.zeros(1, requires_grad=True)])  # only then, as it loads torch._dynamo

    @abstractmethod
    def init(self, network: Network, clients: int) -> State:
        """The server's state before round 1, for a federation of N clients; `network.start` is from the shared seed."""

    @abstractmethod
    def broadcast(self, state: State) -> Message:
        """What every client of the round is sent."""

    @abstractmethod
    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        """What a stack of K clients does with the broadcast: their messages and their new memories, K in front."""

    @abstractmethod
    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        """The next state, from the stacked messages of the clients named, in ascending order."""

    @abstractmethod
    def models(self, state: State) -> dict[str, Weights]:
        """`deployed`, what goes onto a device, and `float`, what training goes on with. They may be the same."""

    @abstractmethod
    def uplink(self, network: Network, down: Message, key: Key) -> dict[str, Codec]:
        """How each tensor of the message of the client of this key travels. Both sides hold `down`, and the key."""

    @abstractmethod
    def downlink(self, network: Network, held: Message | None = None) -> dict[str, Codec]:
        """How each tensor of the broadcast travels; `held`: to those who hold the broadcast of the round before.

        Before round 1 that is what the shared seed makes, for all methods; later on, if `keeps_broadcast`. Whoever
        holds it can also read what is meant for everybody, as the server may not know that they do.
        """

    @property
    def uplinks_differ(self) -> bool:
        """Whether `uplink` makes use of the key, so that every client has codecs of its own."""
        return False

    @property
    def keeps_broadcast(self) -> bool:
        """Whether `downlink` makes use of what was broadcast, so that both sides have to keep it for a round."""
        return False

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        """What one client minimises: (*weights, x_B, y_B) -> (), where `descend` is given `weights` to start from.

        A function of these arguments and of nothing else that changes: on a GPU it is recorded once, and replayed.
        """
        return network.loss(*weights)

    def memory(self, network: Network) -> State:
        """What one client remembers between its rounds, before its first: nothing, unless a method says so."""
        return {}

    def check(self, cohort: int) -> None:
        """Refuse, before anybody trains, rounds of too few clients to merge."""
        return  # one will do for most

    def unmoved(self, down: Message) -> Message:
        """What a client that learns nothing would send, on average; a tensor that is not named would be zeros."""
        return {}

    def measure(self, before: State, ups: Message, after: State) -> Mapping[str, float]:
        """What is written down of a round besides accuracy and bytes, as `measured`: numbers by name.

        `before` and `after`: the states that the round began and ended with; `ups`: the messages that were merged.
        """
        return {}

    def vote_weights(self, state: State) -> Tensor | None:
        """(N,) the share of each client in the last tally, or None where a method does not count votes."""
        return None

    @property
    def rule(self) -> Reputation | None:
        """By which some clients' votes may count for more than others'; None: all count alike."""
        return None

    @property
    def plain_rate(self) -> float | None:
        """The learning rate, if all that the optimiser does is to subtract so many gradients; else None."""
        return self.lr if self.optimizer == "SGD" and not self.optimizer_options else None

    def make_optimizer(self, parameters: Sequence[Tensor]) -> torch.optim.Optimizer:
        """A new optimiser; it steps each element by itself, so that clients in one tensor do not mix."""
        if self.optimizer not in ELEMENTWISE:
            raise ConfigError(
                f"optimizer {self.optimizer!r} is not one of torch.optim that steps element by element; "
                f"known: {', '.join(ELEMENTWISE)}"
            )
        kind, known = getattr(torch.optim, self.optimizer), _options_of(self.optimizer)
        if unknown := self.optimizer_options.keys() - known:
            raise ConfigError(
                f"{self.optimizer} has no option {', '.join(sorted(unknown))}; known: {', '.join(sorted(known))}"
            )
        options = {"lr": self.lr, **({"fused": True} if self.optimizer in FUSED else {}), **self.optimizer_options}
        try:
            made: torch.optim.Optimizer = kind(parameters, **options)
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            raise ConfigError(f"{self.optimizer} refuses its options {options}: {error}") from error
        return made


@functools.cache
def _options_of(optimizer: str) -> frozenset[str]:
    return frozenset(inspect.signature(getattr(torch.optim, optimizer)).parameters.keys() - {"params", "lr"})
