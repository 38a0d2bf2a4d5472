"""Whole numbers as bit planes: what goes in comes out, and sums are sums modulo a power of two."""

from __future__ import annotations

import pytest
import torch

from fedvote.errors import WireError
from fedvote.randomness import Key
from fedvote.randomness.chacha20 import key_stream
from fedvote.secure.masks import _hash, add_masks
from fedvote.secure.planes import AT_A_TIME, add, bits_for, from_bytes, nbytes, to_bytes, to_numbers, to_planes


def numbers(count: int, bits: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 2**bits, (count,), generator=Key(seed).torch("numbers"))


def test_planes_typed_in() -> None:
    """6, 1, 3: bits 0 are 0, 1, 1; bits 1 are 1, 0, 1; bits 2 are 1, 0, 0."""
    assert to_bytes(to_planes(torch.tensor([6, 1, 3]), 3), 3) == bytes([0b01100000, 0b10100000, 0b10000000])


@pytest.mark.parametrize("count", [0, 1, 8, 31, 33, 1000])
@pytest.mark.parametrize("bits", [1, 5, 20])
def test_numbers_survive_planes_and_bytes(count: int, bits: int) -> None:
    x = numbers(count, bits)
    payload = to_bytes(to_planes(x, bits), count)
    assert len(payload) == nbytes(count, bits) == bits * -(-count // 8)
    assert to_numbers(from_bytes(payload, count, bits), count).tolist() == x.tolist()


@pytest.mark.parametrize("count", [1, 100, 2**20])
@pytest.mark.parametrize("bits", [1, 3, 13])
def test_sums_are_modulo_a_power_of_two(count: int, bits: int) -> None:
    a, b = numbers(count, bits), numbers(count, bits, 1)
    total = to_planes(a, bits)
    add(total, to_planes(b, bits))
    assert torch.equal(to_numbers(total, count), ((a + b) % 2**bits).int())


@pytest.mark.parametrize(("count", "bits"), [(1, 1), (100, 5), (32 * AT_A_TIME + 77, 3)])
def test_masks_are_added_and_subtracted_modulo_a_power_of_two_in_pieces_of_any_size(count: int, bits: int) -> None:
    x = numbers(count, bits)
    one, both = to_planes(x, bits), to_planes(x, bits)
    add_masks(one, [(7, 1)])
    streams = (key_stream(_hash(b"mask", 7), i.to_bytes(12, "little"), one.shape[1], one.device) for i in range(bits))
    mask_n = to_numbers(torch.stack(list(streams)), count)
    assert torch.equal(to_numbers(one, count), ((x + mask_n) % 2**bits).int())
    add_masks(both, [(7, -1), (8, 1), (7, 1), (8, -1)])
    assert torch.equal(to_numbers(both, count), x.int())
    add_masks(one, [(7, -1)])
    assert torch.equal(to_numbers(one, count), x.int())


@pytest.mark.parametrize(("largest", "bits"), [(1, 1), (31, 5), (32, 6), (31 * 32766, 20)])
def test_the_modulus_is_the_least_power_of_two_above_the_largest_sum(largest: int, bits: int) -> None:
    assert bits_for(largest) == bits and 2 ** (bits - 1) <= largest < 2**bits


def test_a_payload_of_another_length_is_refused() -> None:
    with pytest.raises(WireError, match="26 bytes, expected 65: 100 whole numbers of 5 bits"):
        from_bytes(bytes(26), 100, 5)
