"""Signed whole numbers are lossless, and none beyond the limit gets through."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedvote.codecs import Integers, Signed, Tallies
from fedvote.errors import WireError


@given(st.integers(1, 2000), st.data(), st.booleans())
def test_numbers_up_to_the_limit_survive(limit: int, data: st.DataObject, entropy: bool) -> None:
    values = data.draw(st.lists(st.integers(-limit, limit), max_size=70))
    x, codec = torch.tensor(values, dtype=torch.int16), Signed(len(values), limit, entropy)
    back = codec.decode(codec.encode(x))
    assert back.dtype == (torch.int8 if limit < 128 else torch.int16) and torch.equal(back, x.to(back.dtype))


def test_minus_one_zero_and_one_take_two_bits_when_plain() -> None:
    x = torch.tensor([-1, 0, 1, 1, -1, 0, 0, 1], dtype=torch.int16)
    assert Signed(8, 1, entropy=False).encode(x) == Integers(8).encode(x + 1)
    assert len(Signed(8, 1, entropy=False).encode(x)) == 1 + 2


@pytest.mark.parametrize("entropy", [True, False])
def test_numbers_beyond_the_limit_are_neither_sent_nor_taken(entropy: bool) -> None:
    codec = Signed(3, 2, entropy)
    for values in ([0, 3, 0], [-3, 0, 0]):
        with pytest.raises(WireError, match="is not whole numbers up to ±2"):
            codec.encode(torch.tensor(values, dtype=torch.int16))
    forged = (Tallies(3) if entropy else Integers(3)).encode(torch.tensor([0, 5, 4], dtype=torch.int16))
    with pytest.raises(WireError, match="a number of 3, expected at most 2"):
        codec.decode(forged)


def test_fractions_are_not_sent() -> None:
    with pytest.raises(WireError, match="is not whole numbers"):
        Signed(1, 2).encode(torch.tensor([0.5]))
