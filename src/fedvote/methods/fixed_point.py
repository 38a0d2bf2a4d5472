"""Updates as whole numbers of one scale that all clients share: their mean follows from their sum alone.

    level = s x / c, rounded, clipped to -s ... s;    the mean of x is c / (s K) times the sum of K levels

c is a declared bound, larger changes are clipped. A weight that is NaN has no level: the codec refuses the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedvote.codecs.signed import whole_numbers
from fedvote.core import Message, State
from fedvote.method import Merge


def to_levels(x: Tensor, clip: float, levels: int) -> Tensor:
    """The nearest of 2 s + 1 levels."""
    return in_codec_type((x * (levels / clip)).round().clamp(-levels, levels), levels)


def in_codec_type(level: Tensor, levels: int) -> Tensor:
    """Levels in the codec's type, with a value that it refuses for NaN."""
    dtype = whole_numbers(levels)
    return level.nan_to_num(0).to(dtype).masked_fill_(level.isnan(), torch.iinfo(dtype).min)


class MeanLevel(Merge):
    """A running sum of levels: messages are added as they arrive, and not kept."""

    def __init__(self, name: str, levels: int, finish: Callable[[Tensor], State]):
        """`finish`: the mean level (D + F,) -> the next state."""
        self._name, self._levels, self._finish = name, levels, finish
        self._sum_N: Tensor | int = 0
        self._clients = 0

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        self._sum_N = self._sum_N + ups[self._name].sum(0, dtype=torch.int32)
        self._clients += len(clients)

    def add_sums(self, sums: Message, clients: Sequence[int]) -> None:
        # the codec adds s to every level
        self._sum_N = self._sum_N + sums[self._name][0] - self._levels * len(clients)
        self._clients += len(clients)

    def close(self) -> State:
        return self._finish(torch.as_tensor(self._sum_N).double().div(self._clients).float())
