"""A validation set: training examples that no client has, for choosing settings without the test examples."""

from __future__ import annotations

from dataclasses import replace
from typing import SupportsFloat

import torch

from fedvote import contracts
from fedvote.core import Dataset
from fedvote.errors import DataError
from fedvote.randomness import Key


def hold_out(data: Dataset, share: float, seed: int = 0) -> Dataset:
    """The same data with this share of the training examples in place of the test examples, drawn by the seed."""
    if not isinstance(data, Dataset):
        raise DataError(f"data is {contracts.kind(data)}, expected a Dataset, such as fedvote.from_arrays(...) makes.")
    if not isinstance(share, SupportsFloat) or not 0 < share < 1:
        raise DataError(f"share is {share!r}, expected a number between 0 and 1, such as 0.1.")
    count = round(share * len(data.train))
    if not 0 < count < len(data.train):
        has = f"{data.name} has {len(data.train)} training samples"
        raise DataError(f"{has}, and a share of {share} holds out {count}: expected at least one, and not all.")
    order = torch.from_numpy(Key(seed).numpy("validation").permutation(len(data.train)))
    held_out, kept = order[:count].sort().values, order[count:].sort().values
    writers = None if data.writers is None else data.writers[kept]
    return replace(data, train=data.train.rows(kept), test=data.train.rows(held_out), writers=writers)
