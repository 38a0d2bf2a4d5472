"""A frame is the message expected, or it is refused with a sentence."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedvote.codecs import Binary, Float32, Header, Integers, Ternary, pack, unpack
from fedvote.core import Codec, Message
from fedvote.errors import WireError
from fedvote.randomness import SERVER
from fedvote.wire import Delivery, stacked

HEADER = Header(round=3, client=12, fingerprint=b"\x01\x02ABCDEF", method="FedVote")
CODECS: dict[str, Codec] = {"votes": Binary(11), "float": Float32(2)}
MESSAGE: Message = {
    "votes": torch.tensor([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, -1], dtype=torch.int8),
    "float": torch.tensor([0.5, -2.0]),
}
FRAME = pack(HEADER, MESSAGE, CODECS)


def sealed(body: bytes) -> bytes:
    """A frame as a cunning sender makes it: whatever the body, the checksum fits."""
    return body + struct.pack("<I", zlib.crc32(body))


def head(version: int = 7, magic: bytes = b"FVOT", tensors: int = 2) -> bytes:
    about = HEADER.round, HEADER.client, HEADER.fingerprint, b"FedVote".ljust(16, b"\0")
    return struct.pack("<4sHIi8s16sB", magic, version, *about, tensors)


def votes_head(size: int) -> bytes:
    """Before the payload of the votes: codec 1, eleven of them."""
    return struct.pack("<BII", 1, 11, size)


def float_tensor(*values: float) -> bytes:
    return struct.pack("<BII", 4, 2, 8) + struct.pack("<ff", *values)


def assert_refused(frame: bytes, saying: str = "[a-z]", expected: Header = HEADER) -> None:
    with pytest.raises(WireError, match=saying):
        unpack(frame, expected, CODECS)


def test_a_message_survives_its_frame() -> None:
    got = unpack(FRAME, HEADER, CODECS)
    assert list(got) == ["votes", "float"]
    assert all(torch.equal(got[name], MESSAGE[name]) for name in MESSAGE)


def test_a_frame_is_laid_out_as_documented() -> None:
    body = head() + votes_head(2) + Binary(11).encode(MESSAGE["votes"]) + float_tensor(0.5, -2.0)
    assert sealed(body) == FRAME
    assert len(FRAME) == 39 + (9 + 2) + (9 + 8) + 4


@pytest.mark.parametrize(("round", "client"), [(0, SERVER), (2**32 - 1, 2**31 - 1)])
def test_the_ends_of_the_numbers_fit(round: int, client: int) -> None:
    header = Header(round, client, bytes(8), "a" * 16)
    assert unpack(pack(header, {}, {}), header, {}) == {}


def test_the_order_is_that_of_the_codecs_not_of_the_message() -> None:
    assert pack(HEADER, dict(reversed(MESSAGE.items())), CODECS) == FRAME


@pytest.mark.parametrize("names", [[], ["votes"], ["votes", "float", "more"]])
def test_a_message_without_the_right_tensors_is_not_packed(names: list[str]) -> None:
    with pytest.raises(WireError, match=r"cannot travel by codecs for \['float', 'votes'\]"):
        pack(HEADER, {name: MESSAGE.get(name, torch.zeros(1)) for name in names}, CODECS)


def test_any_single_flipped_bit_is_refused() -> None:
    for bit in range(8 * len(FRAME)):
        flipped = bytearray(FRAME)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_refused(bytes(flipped))


def test_any_truncation_is_refused() -> None:
    for size in range(len(FRAME)):
        assert_refused(FRAME[:size])


def test_any_truncation_of_the_body_is_refused_even_if_the_checksum_fits() -> None:
    for size in range(len(FRAME) - 4):
        assert_refused(sealed(FRAME[:size]))


@pytest.mark.parametrize("more", [b"\0", b"\xff", bytes(4), FRAME])
def test_any_extension_is_refused(more: bytes) -> None:
    assert_refused(FRAME + more, "checksum does not match")
    assert_refused(sealed(FRAME[:-4] + more), f"{len(more)} bytes too many")


@pytest.mark.parametrize(
    ("what", "value"),
    [("round", 4), ("client", 13), ("client", SERVER), ("fingerprint", b"anothers"), ("method", "FedAvg")],
)
def test_a_frame_of_another_round_client_or_model_is_refused_naming_both(what: str, value: int | bytes) -> None:
    other = Header(**(HEADER.__dict__ | {what: value}))
    with pytest.raises(WireError) as refusal:
        unpack(FRAME, other, CODECS)
    assert str(refusal.value) == f"a frame of {what} {getattr(HEADER, what)!r}, expected {value!r}"


def test_another_version_is_refused_naming_both() -> None:
    assert_refused(sealed(head(version=1) + FRAME[39:-4]), r"b'FVOT' version 1, expected b'FVOT' version 7")


def test_what_is_no_frame_is_refused_naming_both() -> None:
    assert_refused(sealed(head(magic=b"GIF8") + FRAME[39:-4]), r"b'GIF8' version 7, expected b'FVOT' version 7")


def test_too_few_bytes_are_refused() -> None:
    assert_refused(b"", "nothing was sent")
    assert_refused(FRAME[:1], "1 bytes are too few for a frame")
    assert_refused(FRAME[:42], "42 bytes are too few for a frame")


def test_a_claimed_length_beyond_the_frame_is_refused_without_allocating() -> None:
    huge = sealed(head() + votes_head(2**32 - 1) + bytes(2))
    tracemalloc.start()
    try:
        assert_refused(huge, "a tensor of 4294967295 bytes in a frame that has 2 left")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_missing_tensor_is_refused() -> None:
    assert_refused(sealed(head() + FRAME[39:50]), "1 tensors in a frame, expected 2")
    assert_refused(sealed(head(tensors=1) + FRAME[39:50]), "1 tensors in a frame, expected 2")


@pytest.mark.parametrize(("codec", "count"), [(2, 11), (1, 10), (1, 2**32 - 1), (255, 11)])
def test_another_codec_or_count_than_expected_is_refused_naming_both(codec: int, count: int) -> None:
    body = head() + struct.pack("<BII", codec, count, 2) + FRAME[48:-4]
    assert_refused(sealed(body), f"{count} values of votes by codec {codec}, expected 11 by codec 1")


def test_a_payload_that_its_codec_refuses_is_refused() -> None:
    one_bit_too_many = votes_head(2) + bytes([0, 1]) + float_tensor(0.5, -2.0)
    assert_refused(sealed(head() + one_bit_too_many), "beyond the end")
    not_a_number = votes_head(2) + bytes(2) + float_tensor(0.5, float("nan"))
    assert_refused(sealed(head() + not_a_number), "are not numbers")


def test_a_frame_for_a_smaller_model_is_refused() -> None:
    small = pack(HEADER, {"votes": MESSAGE["votes"][:8]}, {"votes": Binary(8)})
    with pytest.raises(WireError, match="8 values of votes by codec 1, expected 11 by codec 1"):
        unpack(small, HEADER, {"votes": Binary(11)})


@given(st.binary(max_size=120))
def test_random_bytes_raise_nothing_but_wire_error(noise: bytes) -> None:
    with pytest.raises(WireError):
        unpack(noise, HEADER, CODECS)
    with pytest.raises(WireError):
        unpack(sealed(noise), HEADER, CODECS)


@given(
    st.binary(max_size=40),
    st.sampled_from([Binary(11), Ternary(11), Integers(11), Float32(3)]),
    st.integers(0, 2**32 - 1) | st.integers(0, 40),
)
def test_random_bodies_with_a_right_head_raise_nothing_but_wire_error(noise: bytes, codec: Codec, size: int) -> None:
    for frame in (sealed(head() + noise), sealed(head() + struct.pack("<I", size) + noise)):
        try:
            message = unpack(frame, HEADER, {"x": codec})
        except WireError:
            continue
        assert pack(HEADER, message, {"x": codec}) == frame


STACK: Message = {"votes": torch.arange(33).view(3, 11) % 3 - 1, "float": torch.arange(6.0).view(3, 2)}


@given(st.lists(st.tuples(st.sampled_from(["one stack", "another", "alone"]), st.integers(0, 2)), min_size=1))
def test_messages_are_stacked_in_their_order_however_they_came(parts: list[tuple[str, int]]) -> None:
    stacks = {"one stack": STACK, "another": {name: -values for name, values in STACK.items()}}
    alone = {row: {name: values[row : row + 1] + 1 for name, values in STACK.items()} for row in range(3)}
    deliveries = [
        Delivery(alone[row], 0, [0]) if kind == "alone" else Delivery(stacks[kind], row, [0]) for kind, row in parts
    ]
    together = stacked(deliveries)
    for name in STACK:
        assert torch.equal(together[name], torch.stack([delivery.message[name] for delivery in deliveries]))


@pytest.mark.parametrize("rows", [range(3), range(1, 3), [2]], ids=str)
def test_what_was_delivered_together_is_not_copied(rows: list[int]) -> None:
    together = stacked([Delivery(STACK, row, [0]) for row in rows])
    for name, values in STACK.items():
        assert together[name].data_ptr() == values[rows[0]].data_ptr()
