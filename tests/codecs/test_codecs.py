"""Every codec is lossless, as long as it says, and refuses what it would not have written."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor

from fedvote.codecs import LARGEST, Binary, Float32, Integers, Ternary
from fedvote.codecs.bits import pack_bits, unpack_bits
from fedvote.core import Codec
from fedvote.errors import WireError

KINDS: dict[str, Callable[[int], Codec]] = {
    "binary": Binary,
    "ternary": Ternary,
    "integers": Integers,
    "float32": Float32,
}


def array(dtype: type[np.generic], elements: st.SearchStrategy[int | float]) -> st.SearchStrategy[Tensor]:
    return hnp.arrays(dtype, st.integers(0, 67), elements=elements).map(torch.from_numpy)


binary_votes = array(np.int8, st.sampled_from([-1, 1]))
ternary_votes = array(np.int8, st.sampled_from([-1, 0, 1]))
integers = st.integers(0, 15).flatmap(lambda bits: array(np.int16, st.integers(0, 2**bits - 1)))
floats = array(np.float32, st.floats(-LARGEST, LARGEST, width=32))


def assert_round_trip(codec: Codec, x: Tensor, nbytes: int) -> None:
    payload = codec.encode(x)
    assert isinstance(payload, bytes) and len(payload) == nbytes
    back = codec.decode(payload)
    assert back.dtype == x.dtype and torch.equal(back, x)
    assert codec.weigh(torch.stack([x, x])) == [nbytes, nbytes]
    back += 1  # what comes back is the receiver's to change


def ceil_div(n: int, by: int) -> int:
    return (n + by - 1) // by


@given(binary_votes)
def test_binary_is_lossless_at_eight_votes_a_byte(x: Tensor) -> None:
    assert_round_trip(Binary(len(x)), x, ceil_div(len(x), 8))


@given(ternary_votes)
def test_ternary_is_lossless_at_five_votes_a_byte(x: Tensor) -> None:
    assert_round_trip(Ternary(len(x)), x, ceil_div(len(x), 5))


@given(integers)
def test_integers_are_lossless_at_a_byte_and_the_bit_planes_of_the_largest(x: Tensor) -> None:
    planes = len(f"{int(x.max()):b}") if len(x) and x.max() > 0 else 0
    assert_round_trip(Integers(len(x)), x, 1 + planes * ceil_div(len(x), 8))


@given(floats)
def test_float32_is_lossless_at_four_bytes_each(x: Tensor) -> None:
    assert_round_trip(Float32(len(x)), x, 4 * len(x))
    assert torch.equal(Float32(len(x)).decode(Float32(len(x)).encode(x)).signbit(), x.signbit())  # -0.0 as well


@pytest.mark.parametrize("count", range(18))
def test_every_short_length_survives(count: int) -> None:
    votes = torch.where(torch.arange(count) % 3 == 0, 1, -1).to(torch.int8)
    assert_round_trip(Binary(count), votes, [0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3][count])
    trits = (torch.arange(count) % 3 - 1).to(torch.int8)
    assert_round_trip(Ternary(count), trits, [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4][count])
    assert_round_trip(Integers(count), torch.full((count,), 5, dtype=torch.int16), 1 + 3 * ceil_div(count, 8))
    assert_round_trip(Float32(count), torch.arange(count).float(), 4 * count)


def test_the_bytes_are_as_documented() -> None:
    assert Binary(3).encode(torch.tensor([1, -1, 1])) == bytes([0b10100000])
    assert Ternary(6).encode(torch.tensor([1, 1, 1, 1, 1, 0])) == bytes([242, 81])
    assert Integers(3).encode(torch.tensor([5, 1, 0])) == bytes([3, 0b11000000, 0, 0b10000000])  # lowest plane first
    assert Float32(1).encode(torch.tensor([1.0])) == bytes([0, 0, 0x80, 0x3F])  # little-endian


def test_a_million_ternary_votes_take_a_fifth_of_a_million_bytes() -> None:
    votes = (torch.arange(1_000_003) % 3 - 1).to(torch.int8)
    assert_round_trip(Ternary(len(votes)), votes, 200_001)


@pytest.mark.parametrize("kind", KINDS)
@given(count=st.integers(0, 40), payload=st.binary(max_size=80))
def test_what_is_decoded_is_what_would_have_been_encoded(kind: str, count: int, payload: bytes) -> None:
    """Any bytes are either refused with WireError, or are the one encoding of what they decode to."""
    codec = KINDS[kind](count)
    try:
        x = codec.decode(payload)
    except WireError:
        return
    assert x.shape == (count,) and codec.encode(x) == payload


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 8, 11])
def test_a_wrong_length_is_refused(kind: str, count: int) -> None:
    codec = KINDS[kind](count)
    payload = codec.encode(torch.ones(count, dtype=torch.float32 if kind == "float32" else torch.int16))
    for wrong in (payload + b"\0", payload[:-1] if payload else b"\0\0"):
        with pytest.raises(WireError, match=f"{len(wrong)} bytes"):
            codec.decode(wrong)


@pytest.mark.parametrize("count", [1, 3, 7, 9])
def test_binary_refuses_bits_beyond_the_end(count: int) -> None:
    payload = bytearray(Binary(count).encode(torch.ones(count)))
    for stray in range(-count % 8):
        with pytest.raises(WireError, match="beyond the end"):
            Binary(count).decode(bytes([*payload[:-1], payload[-1] | 1 << stray]))


def test_ternary_refuses_bytes_that_stand_for_no_votes() -> None:
    for byte in range(243, 256):
        with pytest.raises(WireError, match=f"byte {byte} stands for no five votes"):
            Ternary(10).decode(bytes([0, byte]))
    assert Ternary(10).decode(bytes([0, 242])).tolist() == [-1] * 5 + [1] * 5


@pytest.mark.parametrize("stray", [1, 2, 3, 9, 27, 80])
def test_ternary_refuses_votes_beyond_the_end(stray: int) -> None:
    with pytest.raises(WireError, match="beyond the end"):
        Ternary(6).decode(bytes([100, 81 + stray]))
    assert Ternary(6).decode(bytes([100, 81]))[-1] == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), 1.1e9, -3e38])
def test_float32_refuses_what_no_training_makes_and_says_how_many(bad: float) -> None:
    with pytest.raises(WireError, match=r"2 of 3 floats are not numbers of at most 1\.07e\+09"):
        Float32(3).decode(np.array([1.0, bad, bad], "<f4").tobytes())


def test_integers_refuse_more_bit_planes_than_needed() -> None:
    assert Integers(2).decode(bytes([1, 0b01000000])).tolist() == [0, 1]
    with pytest.raises(WireError, match="2 bit planes where fewer are enough"):
        Integers(2).decode(bytes([2, 0b01000000, 0]))
    with pytest.raises(WireError, match="1 bit planes where fewer are enough"):
        Integers(2).decode(bytes([1, 0]))
    with pytest.raises(WireError, match="fewer are enough"):
        Integers(0).decode(bytes([5]))


def test_integers_refuse_bits_beyond_the_end_in_any_plane() -> None:
    for payload in (bytes([2, 0b11100000, 0b11000000]), bytes([2, 0b11000000, 0b11000001])):
        with pytest.raises(WireError, match="beyond the end"):
            Integers(2).decode(payload)


@pytest.mark.parametrize("planes", [16, 17, 255])
def test_integers_refuse_more_than_fifteen_planes(planes: int) -> None:
    with pytest.raises(WireError, match=f"integers in {planes} bit planes"):
        Integers(1).decode(bytes([planes]) + b"\x80" * planes)


def test_the_largest_integer_is_32767() -> None:
    x = torch.tensor([32767, 0], dtype=torch.int16)
    assert_round_trip(Integers(2), x, 16)


@pytest.mark.parametrize(
    ("codec", "x"),
    [
        (Binary(3), torch.tensor([1, 0, -1])),
        (Binary(3), torch.tensor([1, -3, -1])),
        (Binary(3), torch.tensor([1.0, float("nan"), -1.0])),
        (Ternary(3), torch.tensor([1, 2, 0])),
        (Ternary(3), torch.tensor([0.5, 1.0, 0.0])),
        (Integers(2), torch.tensor([-1, 4])),
        (Integers(2), torch.tensor([32768, 4])),
    ],
)
def test_what_is_outside_the_alphabet_is_not_encoded(codec: Codec, x: Tensor) -> None:
    with pytest.raises(WireError, match=r"is not [23] (votes|integers)"):
        codec.encode(x)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), ()])
def test_what_has_another_shape_is_not_encoded(kind: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 "):
        KINDS[kind](3).encode(torch.ones(shape, dtype=torch.int16))


@given(st.lists(st.booleans(), max_size=40))
@example([True] * 8)
def test_bits_are_packed_highest_first(bits: list[bool]) -> None:
    payload = pack_bits(torch.tensor(bits, dtype=torch.bool))
    text = "".join(f"{byte:08b}" for byte in payload)
    assert text == "".join("01"[bit] for bit in bits).ljust(len(text), "0")
    assert unpack_bits(payload, len(bits)).tolist() == bits


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 11, 1000])
def test_a_gpu_makes_and_reads_the_same_bytes(kind: str, count: int) -> None:
    codec, dtype = KINDS[kind](count), torch.float32 if kind == "float32" else torch.int8
    x = torch.where(torch.arange(count) % 3 == 0, 1, 0 if kind == "integers" else -1).to(dtype)
    payload = codec.encode(x.cuda())
    assert payload == codec.encode(x)
    assert torch.equal(codec.decode(payload, "cuda").cpu(), codec.decode(payload))


@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 2.0 * LARGEST, -2.0 * LARGEST, torch.inf, -torch.inf, torch.nan])
def test_floats_that_are_weighed_are_refused_if_and_only_if_the_same_would_be_read_so(number: float) -> None:
    codec, x = Float32(3), torch.tensor([0.0, number, 1.0])
    (weight,) = codec.weigh(x[None])
    if isinstance(weight, WireError):
        with pytest.raises(WireError, match=re.escape(str(weight))):
            codec.decode(codec.encode(x))
    else:
        assert weight == len(codec.encode(x)) and torch.equal(codec.decode(codec.encode(x)), x)
    assert isinstance(weight, WireError) == (not abs(number) <= LARGEST)
