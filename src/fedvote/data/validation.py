"""Judging by training examples that no client has, to choose by: what was chosen by the test examples is not tested."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from fedvote.core import Dataset
from fedvote.errors import DataError


def hold_out(data: Dataset, share: float, rng: np.random.Generator) -> Dataset:
    """The same data without its test examples: this share of the training examples is in their place."""
    held = round(share * len(data.train))
    if not 0 < held < len(data.train):
        has = f"{data.name} has {len(data.train)} training samples"
        raise DataError(f"{has}, of which data.validation = {share} holds out {held}: expected some, and not all.")
    order = torch.from_numpy(rng.permutation(len(data.train)))
    out, kept = order[:held].sort().values, order[held:].sort().values
    writers = None if data.writers is None else data.writers[kept]
    return replace(data, train=data.train.rows(kept), test=data.train.rows(out), writers=writers)
