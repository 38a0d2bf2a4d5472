"""The contract of an augmentation: it changes the inputs of a training batch at random, on the device.

Random numbers come from (seed, round, client, step), by integer hashes: the same on every device, and in both engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.contracts import form, kind, refuse
from fedvote.core import Batches
from fedvote.errors import ConfigError
from fedvote.randomness import Key, as_uniform, random_rows
from fedvote.settings import Settings


@dataclass(frozen=True)
class Augmentation(Settings, ABC):
    """A random change of inputs that keeps their label."""

    draws: ClassVar[int] = 1  # random numbers for each example

    @abstractmethod
    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """Changed copies of the inputs (n, ...), which are scaled floats; u (n, draws): numbers from [0, 1).

        No step may wait for the device: no `.item()`, no `if` on a value, no loop over examples.
        """

    def check(self, shape: Sequence[int]) -> None:
        """Raise ConfigError if inputs of this shape cannot be changed so."""
        return


def check_image(part: Augmentation, shape: Sequence[int]) -> None:
    if len(shape) != 3:
        raise ConfigError(
            f"the augmentation {type(part).__name__} takes images (channels, height, width), but the inputs have shape "
            f"{tuple(shape)}; leave it out"
        )


def check_all(parts: Sequence[Augmentation], shape: Sequence[int]) -> None:
    """Try every augmentation on two inputs of this shape: a user's own may be wrong."""
    x = torch.zeros((2, *shape))
    for part in parts:
        part.check(shape)
        found = part(x, torch.zeros(2, part.draws))
        if not isinstance(found, Tensor) or (found.shape, found.dtype) != (x.shape, x.dtype):
            refuse(part, "__call__", kind(found), form(x))


def augmented(batches: Batches, parts: Sequence[Augmentation], keys: Sequence[Key]) -> Batches:
    """The same batches, whose inputs go through all augmentations, one after the other."""
    K, S, B = batches.index_KSB.shape
    draws = [part.draws for part in parts]

    def change(x: Tensor, numbers: Tensor) -> Tensor:
        for part, u in zip(parts, as_uniform(numbers).split(draws, dim=1), strict=True):
            x = part(x, u)
        return x.contiguous()

    numbers = random_rows(keys, "augment", S * B * sum(draws), batches.index_KSB.device)
    return replace(batches, augment=change, random_KSBR=numbers.view(K, S, B, sum(draws)))


def pick_pixels(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Images whose pixel (i, j) is the pixel (rows[n, i], columns[n, j]) of image n."""
    channels, height, width = x.shape[1:]
    index = (rows[:, :, None] * width + columns[:, None, :]).view(len(x), 1, height * width)
    return x.flatten(2).gather(2, index.expand(-1, channels, -1)).view(x.shape)
