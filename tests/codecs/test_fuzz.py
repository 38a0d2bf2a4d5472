"""Damaged and hostile frames are refused, and the fuzzer that says so finds faults that were put there."""

from __future__ import annotations

import random
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor

from fedvote import FedAvg, FedVote
from fedvote.codecs import (
    Binary,
    EntropyVotes,
    FloatChanges,
    FloatSteps,
    Header,
    IfChanged,
    Levels,
    Sketch,
    Tallies,
    Ternary,
    unpack,
)
from fedvote.codecs.frame import CHECKSUM, HEAD
from fedvote.core import Codec, Message
from fedvote.errors import WireError
from fedvote.method import Method
from fedvote.methods import FetchSGD, SignSGD
from fedvote.randomness import SERVER, Key
from fedvote.reputation import Proportional
from fedvote.rounds import Round
from tests.codecs import fuzz
from tests.codecs.fuzz import ACCEPTED, FITTED, KEPT, MUTATIONS, REFUSED, UNCHANGED, Case, Fault
from tests.toy import Federation, open_round

HEADER = Header(3, 12, b"\x01\x02ABCDEF", "FedVote")
VOTES = torch.tensor([1, -1, 1, 1, -1, -1, 1, -1, 1, 1, -1], dtype=torch.int8)


def case_of(codec: Codec, x: Tensor = VOTES) -> list[Case]:
    return [Case("planted", HEADER, {"votes": codec}, {"votes": x})]


def assert_caught(cases: list[Case], saying: str, frames: int = 3000) -> None:
    with pytest.raises(Fault, match=saying) as fault:
        fuzz.fuzz(cases, frames, seed=5)
    what, where, frame = str(fault.value).rsplit("\n", 2)
    assert what and where.startswith("seed 5, frame ") and "case planted, " in where
    bytes.fromhex(frame)


def test_ten_thousand_frames_pass_and_every_mutation_does_its_work() -> None:
    counts = fuzz.fuzz(fuzz.honest(), 10_000, seed=1)
    assert counts.total() == 10_000
    for mutation in MUTATIONS:
        assert counts[mutation, KEPT, REFUSED] > 50 and counts[mutation, FITTED, REFUSED] > 200, mutation
        assert counts[mutation, KEPT, ACCEPTED] == 0
    for mutation in ("flip", "change", "payload", "swap"):
        assert counts[mutation, FITTED, ACCEPTED] > 10, mutation
    assert sum(n for (_, _, outcome), n in counts.items() if outcome == UNCHANGED) < 1000


def test_a_seed_is_the_same_frames_again() -> None:
    assert fuzz.fuzz(fuzz.honest(3), 500, 3) == fuzz.fuzz(fuzz.honest(3), 500, 3) != fuzz.fuzz(fuzz.honest(4), 500, 4)


def test_every_codec_is_among_the_honest_messages_plain_and_coded() -> None:
    codecs = [(codec, case) for case in fuzz.honest() for codec in case.codecs.values()]
    assert (
        {codec.tag for codec, _ in codecs}
        == set(fuzz.VALID)
        == {*range(1, 7), Sketch.tag, IfChanged.tag, FloatChanges.tag, Levels.tag, FloatSteps.tag}
    )
    modes = {EntropyVotes.tag: {0, 1}, Tallies.tag: {0, 1, 2, 3}, FloatChanges.tag: {0, 1, 2, 3}, Levels.tag: {0, 1}}
    for kind, written in (modes | {FloatSteps.tag: {0, 1}}).items():
        ways = Counter(case.frame[HEAD.size + 9] for codec, case in codecs if codec.tag == kind)
        assert set(ways) == written and min(ways.values()) >= 2, ways


def test_mutations_reach_all_of_a_frame() -> None:
    """Every byte of a frame is hit, and every field of a tensor's head is lied about."""
    (case,) = case_of(Binary(11))
    hit: dict[str, set[int]] = {}
    for name in ("flip", "change", "head", "claim", "payload"):
        for seed in range(3000):
            mutated = MUTATIONS[name](random.Random(seed), case.frame, case, case)
            hit.setdefault(name, set()).update(
                i for i, (a, b) in enumerate(zip(mutated, case.frame, strict=False)) if a != b
            )
    everywhere = set(range(len(case.frame)))
    assert hit["flip"] == hit["change"] == everywhere
    assert hit["head"] == set(range(HEAD.size)) and hit["claim"] == set(range(HEAD.size, HEAD.size + 9))
    assert hit["payload"] > set(range(HEAD.size + 9, HEAD.size + 11))


# Frames as methods really send them


def real_cases(method: Method) -> list[Case]:
    federation = Federation(method)
    network, state = federation.network, federation.states([range(5)])[-1]
    broadcast = open_round(method, network, state, 2)
    _, frames = federation.frames(state, 2, [0, 3])
    head = partial(Header, 2, fingerprint=network.fingerprint, method=type(method).__name__)
    down = unpack(broadcast, head(client=SERVER), method.wire(network).down())
    cases = [Case("down", head(client=SERVER), method.wire(network).down(), down)]
    for client, frame in frames.items():
        codecs = method.wire(network).up(down, Key(0, 2, client))
        cases.append(Case(f"up {client}", head(client=client), codecs, unpack(frame, head(client=client), codecs)))
    assert [case.frame for case in cases] == [broadcast, *frames.values()]
    if held := Round(method, network, Key(0, 2)).reference(state):
        cases.append(Case("to holders", head(client=SERVER), method.wire(network).down(held, Key(0, 2)), down))
    return cases


@pytest.mark.parametrize(
    "method",
    [
        FedVote(train_float=True),
        FedVote(train_float=True, float_levels=7),
        FedVote(votes="ternary", reputation=Proportional()),
        FedVote(coding="plain"),
        FedVote(levels=3, level_rounding="random"),
        FedAvg(),
        FedAvg(down_levels=3),
        SignSGD(),
        FetchSGD(k=3),
    ],
    ids=["binary", "floats in levels", "ternary", "plain", "few levels", "FedAvg", "few steps", "signSGD", "FetchSGD"],
)
def test_frames_of_real_rounds_pass(method: Method) -> None:
    counts = fuzz.fuzz(real_cases(method), 1000, seed=2)
    assert counts.total() == 1000


# Planted faults


@dataclass(frozen=True)
class Lax(Binary):
    """Takes any padding."""

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if len(payload) != 2:
            raise WireError("length")
        return Binary(self.count).decode(bytes([payload[0], payload[1] & 0xE0]), device)


@dataclass(frozen=True)
class Raises(Binary):
    error: type[BaseException] = ValueError

    def decode(self, payload: bytes, device: torch.device | str = "cpu") -> Tensor:
        if payload[:1] > b"\xf0":
            raise self.error("planted")
        return super().decode(payload, device)


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


# The command


def test_the_command_prints_counts_by_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    fuzz.main(["--frames", "200", "--seed", "7"])
    title, *rows, last = capsys.readouterr().out.splitlines()
    assert "kept refused" in title and [row.split()[0] for row in rows] == list(MUTATIONS)
    assert sum(int(cell.replace(",", "")) for row in rows for cell in row.split()[1:]) == 200
    assert last.startswith("200 frames, seed 7, ") and last.endswith("all passed")


def test_the_command_fails_with_the_seed_and_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "honest", lambda seed: case_of(Raises(11)))
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    with pytest.raises(SystemExit) as stopped:
        fuzz.main(["--frames", "3000", "--seed", "9"])
    assert isinstance(stopped.value.code, str)  # which Python prints to standard error, and exits with 1
    assert "decoding raised ValueError" in stopped.value.code and "seed 9, frame " in stopped.value.code
    bytes.fromhex(stopped.value.code.splitlines()[-1])
