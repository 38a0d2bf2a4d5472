"""The fuzzer finds faults that were put there: in codecs, in frames, in memory and time."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from fedvote.codecs import (
    Binary,
    Header,
    Ternary,
    unpack,
)
from fedvote.codecs.frame import CHECKSUM, HEAD
from fedvote.core import Codec, Message
from fedvote.errors import WireError
from tests.codecs import fuzz
from tests.codecs.fuzz import Fault
from tests.codecs.fuzz_cases import VOTES, Raises, case_of
from tests.codecs.fuzz_messages import Case


def assert_caught(cases: list[Case], saying: str, frames: int = 3000) -> None:
    with pytest.raises(Fault, match=saying) as fault:
        fuzz.fuzz(cases, frames, seed=5)
    what, where, frame = str(fault.value).rsplit("\n", 2)
    assert what and where.startswith("seed 5, frame ") and "case planted, " in where
    bytes.fromhex(frame)


@dataclass(frozen=True)
class Lax(Binary):
    """Takes any padding."""

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != 2:
            raise WireError("length")
        return Binary(self.count).decode(bytes([payload[0], payload[1] & 0xE0]), device)


@dataclass(frozen=True)
class Hoards(Binary):
    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) > 2:
            bytes(1000 * 1024)
        return super().decode(payload, device)


@dataclass(frozen=True)
class Toils(Binary):
    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) > 2:
            sum(len(payload[:n]) for n in range(2000))
        return super().decode(payload, device)


@dataclass(frozen=True)
class Hangs(Binary):
    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if payload[:1] > b"\xf0":
            time.sleep(60)
        return super().decode(payload, device)


@dataclass(frozen=True)
class Other(Binary):
    """Decodes something else than it was sent."""

    change: Callable[[Tensor], Tensor] = torch.neg

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        x = super().decode(payload, device)
        return x if torch.equal(x, VOTES) else self.change(x)


class Panic(BaseException):
    """As compiled libraries raise it."""


@pytest.mark.parametrize("error", [ValueError, IndexError, AssertionError, OverflowError, MemoryError, Panic])
def test_another_error_than_wire_error_is_caught(error: type[BaseException]) -> None:
    assert_caught(case_of(Raises(11, error)), f"decoding raised {error.__name__}: planted")


def test_padding_that_no_encoder_writes_is_caught() -> None:
    assert_caught(case_of(Lax(11)), "not the one that its message is written as")


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (torch.neg, "not the one that its message is written as"),
        (lambda x: x.float(), "votes is torch.float32 of .11,., expected torch.int8 of .11,."),
        (lambda x: x[:-1], "votes is torch.int8 of .10,., expected torch.int8 of .11,."),
        (lambda x: x * 3, "votes has values that codec 1 does not carry"),
        (lambda x: x * 0, "votes has values that codec 1 does not carry"),
    ],
    ids=["inverted", "floats", "shorter", "threefold", "zeros"],
)
def test_a_wrong_message_is_caught(change: Callable[[Tensor], Tensor], saying: str) -> None:
    assert_caught(case_of(Other(11, change)), saying)


def test_a_codec_that_does_not_return_what_was_sent_is_caught() -> None:
    @dataclass(frozen=True)
    class Stuck(Ternary):
        def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
            return super().decode(payload, device) * 0

    assert_caught(case_of(Stuck(11)), "not decoded to itself|not the one that its message")


def test_memory_and_calls_beyond_measure_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "MEASURED", 3)
    assert_caught(case_of(Hoards(11)), "bytes allocated for")
    assert_caught(case_of(Toils(11)), "calls for")


def test_tensors_beyond_measure_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = iter([10**9] + [2 * 10**9] * 10)
    monkeypatch.setattr(fuzz, "_resident_bytes", lambda: next(grown))
    assert_caught(case_of(Binary(11)), "the process grew by 1000000000 bytes")


def test_a_frame_that_hangs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "SECONDS_A_FRAME", 0.05)
    assert_caught(case_of(Hangs(11)), "a frame took more than 0.05 seconds")


def without_checksum(frame: bytes, expected: Header, codecs: dict[str, Codec]) -> Message:
    body = frame[: -CHECKSUM.size]
    return unpack(body + CHECKSUM.pack(zlib.crc32(body)), expected, codecs)


def without_header(frame: bytes, expected: Header, codecs: dict[str, Codec]) -> Message:
    _, _, round, client, *_ = HEAD.unpack_from(frame.ljust(HEAD.size, b"\0"))
    return unpack(frame, Header(round, client, expected.fingerprint, expected.method), codecs)


def too_strict(frame: bytes, expected: Header, codecs: dict[str, Codec]) -> Message:
    raise WireError("planted")


@pytest.mark.parametrize(
    ("instead", "saying"),
    [
        (without_checksum, "a damaged frame was accepted"),
        (without_header, "a frame with another head was accepted"),
        (too_strict, "WireError: planted"),
    ],
)
def test_a_frame_that_is_not_checked_is_caught(
    instead: Callable[..., Message], saying: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "unpack", instead)
    assert_caught(case_of(Binary(11)), saying)
