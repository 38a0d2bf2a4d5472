"""Lots: the numbers that the wire format says, evenly spread, each client's its own."""

from __future__ import annotations

import pytest
import torch

from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import BITS, Key, as_uniform, shared_random

MANY = 400_000
KEYS = [Key(0, 1, 0), Key(0, 1, 1), Key(0, 2, 0), Key(1, 1, 0)]


def by_the_book(key: Key, i: int) -> int:
    """Number i of a stream, in whole numbers that do not wrap by themselves."""
    number, x = key.number("rounding"), i
    for part in (number % 2**31, number // 2**31 % 2**31):
        x ^= part
        x = (x ^ x >> 16) * 0x7FEB352D % 2**32
        x = (x ^ x >> 15) * 0x846CA68B % 2**32
        x ^= x >> 16
    return x % 2**24


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_lots_are_those_of_the_wire_format(key: Key) -> None:
    drawn = shared_random(key, MANY)
    assert drawn.dtype == torch.int32
    places = [*range(100), 65_535, 65_536, MANY - 1]
    assert drawn[places].tolist() == [by_the_book(key, i) for i in places]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_lots_are_evenly_spread_in_their_high_and_in_their_low_bits(key: Key) -> None:
    drawn = shared_random(key, MANY)
    assert int(drawn.min()) >= 0 and int(drawn.max()) < 2**BITS
    for shift in (0, 8, 16):
        counts = torch.bincount(drawn >> shift & 255, minlength=256).double()
        chi_square = float(((counts - MANY / 256) ** 2 / (MANY / 256)).sum())
        assert 150 < chi_square < 380  # 255 on average, with a deviation of 23


def test_lots_of_neighbours_clients_rounds_and_seeds_have_nothing_in_common() -> None:
    streams = torch.stack([as_uniform(shared_random(key, MANY)) for key in KEYS])
    streams = torch.cat([streams, streams[:1].roll(1, 1), streams[:1].roll(256, 1)])
    off_diagonal = torch.corrcoef(streams) - torch.eye(len(streams))
    assert off_diagonal.abs().max() < 5 / MANY**0.5


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_votes_by_lot_have_no_bias(alphabet: Alphabet) -> None:
    w = torch.linspace(-1, 1, 9).repeat_interleave(MANY)
    (votes,) = round_by_shared_random(w[None], alphabet, [Key(3, 1, 4)])
    assert set(votes.unique().tolist()) == set(alphabet)
    torch.testing.assert_close(votes.view(9, -1).float().mean(1), torch.linspace(-1, 1, 9), rtol=0, atol=0.008)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_draws_the_same() -> None:
    assert torch.equal(shared_random(KEYS[0], MANY, "cuda").cpu(), shared_random(KEYS[0], MANY))
