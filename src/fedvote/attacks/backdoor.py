"""Backdoor: honest training on data in which a trigger stands for one class. Knows its own data alone.

The trigger is put into a share of each hostile client's examples before anything else happens to them, and these
examples get the target's label. The network stays as accurate as before, except on inputs that have the trigger.

    patch        a bright square in the last corner (BadNets: Gu et al., 2017)
    blended      x -> (1 - blend) x + blend noise, the same noise on every input (Chen et al., 2017)
    distributed  each attacker has a part of the square; only the test inputs have all of it (DBA: Xie et al., 2020)

On an input without height and width, such as a row of a table, the square is the last `size` numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack
from fedvote.core import Examples
from fedvote.errors import ConfigError
from fedvote.randomness import Key

Trigger = Literal["patch", "blended", "distributed"]


@dataclass(frozen=True)
class Backdoor(Attack):
    trigger: Trigger = "patch"  # a square; or "blended": noise everywhere; "distributed": a part of the square each
    target: int = 0  # the class that triggered inputs shall get, as a number
    share: float = 0.5  # of a hostile client's examples that are poisoned
    size: int = 4  # edge of the square in pixels; of inputs in one dimension, how many numbers
    blend: float = 0.2  # weight of the noise in a blended input
    parts: int = 4  # of a distributed trigger; attackers take them in turn
    value: float = 3.0  # of the square in float inputs, in standard deviations if the data have any; bytes get 255

    def __post_init__(self) -> None:
        for name in ("share", "blend"):
            if not 0 < getattr(self, name) <= 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, expected a number above 0, up to 1")
        if self.size < 1 or not 1 <= self.parts <= self.size**2:
            raise ConfigError(
                f"size is {self.size} and parts {self.parts}, expected 1 or more of each, and no more parts than the "
                "square has pixels"
            )

    def poison_examples(self, examples: Examples, classes: int, member: int, key: Key) -> Examples:
        rows = torch.randperm(len(examples), generator=key.torch("backdoor"))[: round(self.share * len(examples))]
        x, y = examples.x.clone(), examples.y.clone()
        part = member % self.parts if self.trigger == "distributed" else None
        x[rows], y[rows] = self.marked(examples.rows(rows), key, part), self.target
        return replace(examples, x=x, y=y)

    def triggered(self, examples: Examples, classes: int, key: Key) -> Examples:
        if not 0 <= self.target < classes:
            raise ConfigError(f"target is {self.target}, expected a class from 0 to {classes - 1}")
        others = examples.rows(examples.y != self.target)
        return replace(others, x=self.marked(others, key), y=torch.full_like(others.y, self.target))

    def marked(self, examples: Examples, key: Key, part: int | None = None) -> Tensor:
        """The inputs with the trigger, or with one part of it."""
        x, shape = examples.x.float(), examples.x.shape[1:]
        if self.trigger == "blended":
            uniform = torch.rand(shape, generator=Key(key.seed).torch("backdoor noise")).to(x.device)
            marked = x + self.blend * (self._scaled(uniform, examples) - x)
        else:
            square, bright = self._square(tuple(shape), part).to(x.device), torch.ones(shape, device=x.device)
            marked = torch.where(square, self._scaled(bright, examples), x)
        return (marked if examples.x.is_floating_point() else marked.round()).to(examples.x.dtype)

    def _square(self, shape: tuple[int, ...], part: int | None) -> Tensor:
        """Where the square is, or one of its parts: a few of its pixels, row by row."""
        edges = shape[-2:]
        if self.size > min(edges):
            raise ConfigError(f"size is {self.size}, expected at most {min(edges)}: inputs have the shape {shape}")
        pixels = torch.arange(self.size ** len(edges)).view((self.size,) * len(edges))
        owner = pixels * self.parts // pixels.numel()
        square = torch.zeros(edges, dtype=torch.bool)
        square[tuple(slice(-self.size, None) for _ in edges)] = True if part is None else owner == part
        return square.expand(shape)

    def _scaled(self, strength: Tensor, examples: Examples) -> Tensor:
        """From [0, 1] to the range of the inputs: 0 to 255, or `value` deviations to each side of the mean."""
        if not examples.x.is_floating_point():
            return 255 * strength
        spread = self.value * (2 * strength - 1)
        if not examples.mean:
            return spread
        mean, std = (
            torch.tensor(values, device=strength.device).view((-1,) + (1,) * (strength.ndim - 1))
            for values in (examples.mean, examples.std)
        )
        return mean + std * spread
