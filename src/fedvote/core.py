"""Types that several parts share: examples, batches, messages, codecs.

Axes, as suffixes of names and in annotations:

    N  clients in the federation        S  local steps of a round (tau in the paper)
    K  clients of one round, stacked    B  examples in a batch
    D  voted weights                    F  float weights
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from fedvote.errors import WireError

State = dict[str, Tensor]
"""Plain named tensors: all that the server keeps between two rounds."""

Message = dict[str, Tensor]
"""Plain named tensors that travel; stacked messages have a leading axis K."""

NO_VOTE = -128
"""The vote of a weight that is NaN: every codec refuses it."""

Augment = Callable[[Tensor, Tensor], Tensor]
"""(inputs (n, ...), random numbers (n, R) from 0 to 2^24 - 1) -> changed inputs."""

Task = Literal["classification", "regression", "multi-label"]
"""What targets are: one class each, numbers, or any number of labels each."""
TASKS: tuple[Task, ...] = get_args(Task)

Length = int | Future[int]
"""A length in bytes; a Future while a coder process still counts."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and their targets as two tensors. Bytes stay bytes until a batch is taken: x -> (x / 255 - mean) / std."""

    x: Tensor  # (n, channels, height, width) uint8, or any floats
    y: Tensor  # (n,) int64: classes; or (n, targets) float32
    mean: tuple[float, ...] = ()  # for each channel; empty: no scaling by mean and std
    std: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Examples({len(self)} of shape {tuple(self.x.shape[1:])}, {self.x.dtype})"

    def to(self, device: torch.device | str) -> Examples:
        return Examples(self.x.to(device), self.y.to(device), self.mean, self.std)

    def rows(self, index: Tensor | slice) -> Examples:
        return Examples(self.x[index], self.y[index], self.mean, self.std)

    def take(self, index: Tensor | slice) -> tuple[Tensor, Tensor]:
        """The scaled inputs and the labels; both shapes begin with the shape of `index`."""
        x = self.x[index]
        shape = (-1,) + (1,) * (self.x.ndim - 2)
        mean, std = (_on(x.device, values).view(shape) for values in (self.mean, self.std))
        return scaled(x, mean, std), self.y[index]


@dataclass(frozen=True, eq=False)
class Dataset:
    """The training and the test examples of a task."""

    name: str
    train: Examples
    test: Examples
    classes: tuple[str, ...]  # their names; in regression the names of the targets: one for each output of a network
    writers: Tensor | None = field(default=None, repr=False)  # (n,) int64: the writer of each example, if known
    task: Task = "classification"
    columns: tuple[str, ...] = ()  # names of the inputs, if they are a table whose names are known

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.train.x.shape[1:])


@dataclass(frozen=True, eq=False)
class Batches:
    """The mini-batches of a stack of clients: indices into examples that are already on the device."""

    examples: Examples
    index_KSB: Tensor
    samples_K: Tensor  # the number of examples of each client
    poisoned_KSB: Tensor | None = None  # labels that replace the examples' own
    steps_K: tuple[int, ...] | None = None  # the steps of each client, if they differ
    augment: Augment | None = None  # changes the inputs of a batch at random
    random_KSBR: Tensor | None = None  # the R random numbers of each example, for `augment`; int32
    rate: float = 1.0  # factor of the method's learning rate in this round
    rounds: int = 1  # of the whole run, for schedules
    noise_KS2: Tensor | None = None  # bits that dropout masks follow from, if the network has dropout

    @property
    def clients(self) -> int:
        return self.index_KSB.shape[0]

    @property
    def steps(self) -> int:
        return self.index_KSB.shape[1]

    def of(self, client: int) -> Batches:
        """The batches of one client of the stack, one for each of its steps."""
        row, steps = slice(client, client + 1), slice(self.steps_K[client] if self.steps_K else self.steps)
        of_steps = ("index_KSB", "poisoned_KSB", "random_KSBR", "noise_KS2")
        cut = {name: value[row, steps] for name in of_steps if (value := getattr(self, name)) is not None}
        return replace(self, samples_K=self.samples_K[row], steps_K=None, **cut)

    def ending(self, step: int) -> list[int]:
        """The clients whose last step this is."""
        ends = self.steps_K or (self.steps,) * self.clients
        return [client for client, steps in enumerate(ends) if steps == step + 1]

    def at(self, step: int) -> tuple[Tensor, ...]:
        """Inputs (K, B, ...) and labels (K, B) of one local step, and the bits (K, 2) of its dropout, if any."""
        x_KB, y_KB = self.examples.take(self.index_KSB[:, step])
        if self.augment and self.random_KSBR is not None:
            numbers_nR = self.random_KSBR[:, step].flatten(0, 1)
            x_KB = self.augment(x_KB.flatten(0, 1), numbers_nR).view(x_KB.shape)
        y_KB = y_KB if self.poisoned_KSB is None else self.poisoned_KSB[:, step]
        return (x_KB, y_KB) if self.noise_KS2 is None else (x_KB, y_KB, self.noise_KS2[:, step])


def scaled(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Inputs as a network takes them: bytes are divided by 255. Empty `mean` and `std` change nothing."""
    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    return (x - mean) / std if mean.numel() else x


@functools.lru_cache(maxsize=64)
def _on(device: torch.device, values: tuple[float, ...]) -> Tensor:
    """Constants on a device, copied once: every copy waits for the device."""
    return torch.tensor(values, device=device)


class Codec(ABC):
    """A lossless codec: decode(encode(x)) == x. It refuses, with WireError, all but `count` values of its kind."""

    tag: ClassVar[int]  # the codec's number on the wire
    dtype: ClassVar[torch.dtype | None] = None  # of its values; None: not checked
    signed: ClassVar[bool] = True  # whether minus a value is a value, too; false for indices and counts
    count: int  # the number of values

    @property
    def plain_bits(self) -> float:
        """Bits of one value without entropy coding."""
        return 32.0

    @property
    def largest(self) -> int:
        """The largest number that `to_whole_numbers` returns; 0: these values cannot be summed."""
        return 0

    @property
    def numbers_per_value(self) -> int:
        """S: how many whole numbers represent one value."""
        return 1

    def to_whole_numbers(self, x: Tensor) -> Tensor:
        """(S, count) whole numbers from 0 to `largest`. A merge by `add_sums` gets their sums over clients alone.

        The S numbers of one value are at most `largest` together.
        """
        raise WireError(f"{type(self).__name__} does not carry whole numbers")

    @abstractmethod
    def encode(self, x: Tensor) -> bytes:
        """A vector as bytes; WireError for values that are not of its kind."""

    @abstractmethod
    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        """The vector; WireError for every payload that `encode` cannot have written."""

    def weigh(self, rows: Tensor) -> list[Length | WireError]:
        """For each row, the length of `encode(row)` in bytes, or the reason why `decode` would refuse it."""
        weights: list[Length | WireError] = []
        for row in rows:
            try:
                weights.append(self.weigh_one(row))
            except WireError as error:
                weights.append(error)
        return weights

    def weigh_one(self, x: Tensor) -> Length:
        """The length of `encode(x)` in bytes; WireError if `decode` would refuse it. Subclasses may be faster."""
        payload = self.encode(x)
        self.decode(payload)
        return len(payload)


@dataclass(frozen=True, eq=False)
class Weights:
    """A model as the two flat vectors that a `Network` takes."""

    voted: Tensor  # (D,)
    floats: Tensor  # (F,)
