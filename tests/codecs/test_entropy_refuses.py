"""What is no vote is not coded, and bytes that no coder writes are refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedvote.codecs import Binary, EntropyVotes, Ternary
from fedvote.codecs.entropy import CODED, PLAIN
from fedvote.core import NO_VOTE
from fedvote.errors import UnwritableError, WireError
from fedvote.quantize import BINARY, TERNARY, Alphabet
from tests.codecs.entropy_cases import (
    assert_round_trip,
    coder,
    coder_of_one,
    drawn_as,
    every_alphabet,
    random_context,
    votes_of,
)


@every_alphabet
@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("bad", [2, -2, 3, 127, -127, 256, 257, 513, -511, 0.5, -0.5, 1.5, float("nan"), float("inf")])
def test_what_is_no_vote_is_not_encoded(alphabet: Alphabet, count: int, bad: float) -> None:
    x = torch.full((count,), 1, dtype=torch.float32 if isinstance(bad, float) else torch.int32)
    x[1] = bad
    for values in (x, x.to(torch.int8)) if isinstance(bad, int) and -128 <= bad <= 127 else (x,):
        with pytest.raises(WireError, match=f"a tensor with .* in it is not {count} votes"):
            coder(alphabet, [0] * count, 1).encode(values)


@every_alphabet
@pytest.mark.parametrize("count", [3, 200])
def test_weights_that_are_no_numbers_leave_nothing_to_encode(alphabet: Alphabet, count: int) -> None:
    x = torch.ones(count, dtype=torch.int8)
    x[[0, 2]] = NO_VOTE
    plain = Binary(count) if alphabet == (-1, 1) else Ternary(count)
    for codec in (coder(alphabet, [0] * count, 1), plain):
        with pytest.raises(UnwritableError, match=f"2 of {count} weights are not numbers after training"):
            codec.encode(x)
        assert isinstance(codec.weigh(x[None])[0], UnwritableError)


@pytest.mark.parametrize("count", [3, 200])
def test_a_zero_is_no_binary_vote(count: int) -> None:
    with pytest.raises(WireError, match=f"a tensor with 0 in it is not {count} votes"):
        coder(BINARY, [0] * count, 1).encode(torch.tensor([0] + [1] * (count - 1), dtype=torch.int8))


@every_alphabet
@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (3, 1), (), (0,)])
def test_what_has_another_shape_is_not_encoded(alphabet: Alphabet, shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 votes"):
        coder(alphabet, [0, 1, 1], 2).encode(torch.ones(shape, dtype=torch.int8))


@pytest.mark.parametrize("context", [[0, 3], [-1, 0], [32767]])
def test_a_context_that_does_not_exist_is_refused(context: list[int]) -> None:
    with pytest.raises(WireError, match=r"contexts from .* to .*, expected 0 to 2"):
        coder(BINARY, context, 3)


@every_alphabet
def test_cut_and_longer_payloads_are_refused(alphabet: Alphabet) -> None:
    context = random_context(1000, 9)
    codec = coder(alphabet, context, 9)
    payload = assert_round_trip(codec, drawn_as(codec.expected, context, alphabet))
    assert payload[:1] == CODED
    for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0", payload + bytes([1, 0, 0, 0])]:
        with pytest.raises(WireError):
            codec.decode(wrong)


@every_alphabet
def test_other_ways_of_writing_than_plain_and_coded_are_refused(alphabet: Alphabet) -> None:
    codec = coder(alphabet, [0, 1, 1], 2)
    payload = codec.encode(votes_of(alphabet, [0, 1, 0]))
    for how in range(2, 256):
        with pytest.raises(WireError, match="neither plain nor coded"):
            codec.decode(bytes([how]) + payload[1:])
    with pytest.raises(WireError, match="0 bytes are neither"):
        codec.decode(b"")


def test_plain_votes_beyond_the_end_are_refused() -> None:
    with pytest.raises(WireError, match="beyond the end"):
        coder(BINARY, [0, 0, 0], 1).decode(PLAIN + bytes([0b00010000]))
    with pytest.raises(WireError, match="beyond the end"):
        coder(TERNARY, [0, 0, 0], 1).decode(PLAIN + bytes([1]))


def test_coded_votes_beyond_the_end_of_a_context_are_refused() -> None:
    codec = coder_of_one(BINARY, 4)
    for stray in (1, 2, 4, 8, 15):
        with pytest.raises(WireError, match="a context has votes beyond its end"):
            codec.decode(CODED + bytes([0, 0, 0b10110000 | stray, 0]))


@every_alphabet
def test_votes_have_one_encoding(alphabet: Alphabet) -> None:
    """Neither mode is accepted where the other is shorter."""
    codec, plain = coder_of_one(alphabet, 200), Binary if alphabet == BINARY else Ternary
    same = torch.full((200,), -1, dtype=torch.int8)
    with pytest.raises(WireError, match="plain votes where coded ones take no more bytes"):
        codec.decode(PLAIN + plain(200).encode(same))
    assert torch.equal(codec.decode(codec.encode(same)), same)


def test_shares_of_other_votes_are_refused() -> None:
    """Eighty votes, all -1, with shares that say so and with shares that do not: ten symbols 0, which cost no words."""
    codec = coder_of_one(BINARY, 80)
    assert codec.encode(torch.full((80,), -1)) == CODED + b"\1\0"
    for share in (2, 100, 32768, 65535):
        with pytest.raises(WireError, match="the shares do not match the votes"):
            codec.decode(CODED + share.to_bytes(2, "little"))


@every_alphabet
def test_shares_that_are_none_are_refused(alphabet: Alphabet) -> None:
    codec = coder(alphabet, [0] * 200, 1)
    payload = codec.encode(votes_of(alphabet, [0] * 200))
    width = 2 * (len(alphabet) - 1)
    with pytest.raises(WireError, match="not positive numbers"):
        codec.decode(payload[:1] + bytes(width) + payload[1 + width :])


@every_alphabet
@pytest.mark.parametrize("count", [0, 1, 6, 40, 200])
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_ballot_or_refused(alphabet: Alphabet, count: int, data: st.DataObject) -> None:
    codec = coder(alphabet, [i % 3 for i in range(count)], 3)
    payload = data.draw(st.sampled_from([b"", PLAIN, CODED])) + data.draw(st.binary(max_size=60))
    assert_ballot_or_refused(codec, payload)


@every_alphabet
def test_a_payload_with_any_bit_flipped_is_a_ballot_or_refused(alphabet: Alphabet) -> None:
    context = random_context(400, 5)
    codec = coder(alphabet, context, 5)
    for x in (drawn_as(codec.expected, context, alphabet), votes_of(alphabet, torch.arange(400) % len(alphabet))):
        payload = codec.encode(x)
        for bit in range(8 * len(payload)):
            flipped = bytearray(payload)
            flipped[bit // 8] ^= 1 << bit % 8
            assert_ballot_or_refused(codec, bytes(flipped))


def assert_ballot_or_refused(codec: EntropyVotes, payload: bytes) -> None:
    try:
        x = codec.decode(payload)
    except WireError:
        return
    assert x.shape == (codec.count,) and x.dtype == torch.int8
    assert set(x.tolist()) <= set(codec.alphabet)
    assert torch.equal(codec.decode(codec.encode(x)), x)
