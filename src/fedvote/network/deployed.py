"""A network as it runs on a device: a module that takes inputs as the data store them, and scales them itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from fedvote import contracts
from fedvote.core import scaled
from fedvote.errors import ConfigError


class Deployed(nn.Module):
    """A network that takes inputs as the dataset stores them: uint8, or unscaled floats. `network`: the layers."""

    scales_inputs = True
    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        mean: Sequence[float],
        std: Sequence[float],
        classes: Sequence[str],
        shape: Sequence[int],
        dtype: torch.dtype,
        votes: int | None = None,
    ):
        """`mean` and `std`: of each channel in training, for uint8 after division by 255; empty: no scaling.

        `shape` and `dtype`: of one stored input. `votes`: how many weights are votes, if it is known.
        """
        super().__init__()
        self.network, self.classes, self.shape, self.dtype = network, tuple(classes), tuple(shape), dtype
        self.votes = votes
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: Tensor) -> Tensor:
        # uint8 is divided by 255, floats are not: the wrong dtype would silently give wrong answers
        if not isinstance(x, Tensor) or x.dtype != self.dtype or tuple(x.shape[1:]) != self.shape:
            raise ConfigError(self._refusal(x))
        y: Tensor = self.network(self.scaled(x))
        return y

    def scaled(self, x: Tensor) -> Tensor:
        """The inputs as `network` takes them."""
        channels = (-1,) + (1,) * (x.ndim - 2)
        return scaled(x, self.mean.view(channels), self.std.view(channels))

    def _refusal(self, x: Any) -> str:
        """The sentence about inputs of another kind, with the fix."""
        to_floats = ".float()" if self.dtype == torch.float32 else ""
        if isinstance(x, np.ndarray):
            given, fix = f"a numpy array of {x.dtype}", f"use torch.from_numpy(x){to_floats}"
        elif not isinstance(x, Tensor):
            given, fix = contracts.kind(x), f"use torch.tensor(x){to_floats}"
        elif x.dtype != self.dtype:
            given, fix = contracts.form(x), f"use x{to_floats}" if to_floats else "give them as the data have them"
        else:
            given, fix = contracts.form(x), "give a batch (one input: n = 1, as x[None])"
        shape = ", ".join(("n", *map(str, self.shape)))
        return f"the inputs are {given}, expected them as in the training data: {self.dtype} of shape ({shape}); {fix}"


def packing_of(voted_D: Tensor) -> str:
    """How these weights are packed on a device: votes as `binary` or `ternary`, other numbers as `float32`."""
    values = set(voted_D.unique().tolist())
    return "binary" if values <= {-1, 1} else "ternary" if values <= {-1, 0, 1} else "float32"


def count_votes(voted_D: Tensor) -> int:
    """How many of these weights are votes: all, or none of a float network."""
    return 0 if packing_of(voted_D) == "float32" else len(voted_D)


def bare(module: nn.Module) -> nn.Module:
    """The layers of a deployed network, for training, which scales inputs itself; other modules as they are."""
    return module.network if isinstance(module, Deployed) else module
