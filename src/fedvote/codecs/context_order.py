"""The order in which values are coded: context after context, and within a context in the order of the weights."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def context_order(context: Tensor) -> Tensor:
    """The places of all values, sorted by context. On a CPU, contexts of at most 16 bits take a radix sort."""
    if context.device.type == "cpu":
        return torch.from_numpy(np.argsort(context.numpy(), kind="stable"))  # torch compares
    return torch.argsort(context, stable=True)
