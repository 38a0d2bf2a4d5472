"""A validation set: training examples that no client has, for choosing settings without the test examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fedvote.core import Dataset
from fedvote.errors import DataError


def hold_out(data: Dataset, share: float, rng: np.random.Generator) -> Dataset:
    """The same data with this share of the training examples in place of the test examples."""
    count = round(share * len(data.train))
    if not 0 < count < len(data.train):
        has = f"{data.name} has {len(data.train)} training samples"
        raise DataError(f"{has}, and data.validation = {share} holds out {count}: expected at least one, and not all.")
    order = torch.from_numpy(rng.permutation(len(data.train)))
    held_out, kept = order[:count].sort().values, order[count:].sort().values
    writers = None if data.writers is None else data.writers[kept]
    return replace(data, train=data.train.rows(kept), test=data.train.rows(held_out), writers=writers)
