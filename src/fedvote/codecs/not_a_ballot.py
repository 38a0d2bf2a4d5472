"""The error for votes that no codec can write."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from fedvote.core import NO_VOTE
from fedvote.errors import UnwritableError, WireError


def not_a_ballot(x: Tensor, count: int, alphabet: Sequence[int]) -> WireError:
    """The reason why x is not `count` votes of this alphabet."""
    missing = int((x == NO_VOTE).sum())
    if x.shape == (count,) and missing:
        return UnwritableError(f"{missing} of {count} weights are not numbers after training, so there is no ballot")
    values = ", ".join(f"{value:+d}" if value else "0" for value in alphabet)
    others = [f"{float(value):g}" for value in x.unique() if value not in alphabet] if x.shape == (count,) else []
    what = f"with {', '.join(others[:3])} in it" if others else f"of shape {tuple(x.shape)}"
    return WireError(f"a tensor {what} is not {count} votes of {values}")
