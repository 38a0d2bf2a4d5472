"""Damaged and hostile frames by the million: python -m tests.codecs.fuzz --frames 1000000 --seed 0

Honest frames of every codec are mutated, with the checksum left as it is (what a bad link does) or made to fit again
(what a bad sender does), and decoded. A frame passes if

- it is refused with WireError, or
- its checksum was made to fit and it is a message of the right shape, type and alphabet that is encoded and decoded
  to itself, and to the same bytes: a ballot has one encoding;
- and, measured on every 500th frame, it took no more memory and calls than a small multiple of an honest one.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType

import numpy as np
import torch
from torch import Tensor

from fedvote.codecs import (
    Binary,
    EntropyVotes,
    Float32,
    FloatChanges,
    FloatSteps,
    Header,
    IfChanged,
    Integers,
    Levels,
    Sketch,
    Start,
    Tallies,
    Ternary,
)
from fedvote.codecs.frame import CHECKSUM, HEAD, TENSOR, pack, unpack
from fedvote.core import Codec, Message
from fedvote.errors import WireError
from fedvote.randomness import Key, shared_random

KEPT, FITTED = "kept", "fitted"
REFUSED, ACCEPTED, UNCHANGED = "refused", "accepted", "unchanged"
MEASURED = 500  # one frame in so many
SECONDS_A_FRAME = 10  # thousands of times what an honest one takes
MULTIPLE, SPARE_BYTES, SPARE_CALLS = 4, 1 << 16, 400  # times an honest frame's, and a little for what errors say
SPARE_RESIDENT_BYTES = 1 << 28  # by which the process may grow: tensors are not traced, but they are seen here

VALID: dict[int, Callable[[Codec, Tensor], Tensor]] = {
    Binary.tag: lambda _, x: (x == -1) | (x == 1),
    Ternary.tag: lambda _, x: (x >= -1) & (x <= 1),
    Integers.tag: lambda _, x: x >= 0,
    Float32.tag: lambda _, x: x.isfinite(),
    EntropyVotes.tag: lambda codec, x: _of_alphabet(codec, x),
    Tallies.tag: lambda _, x: x >= 0,
    Levels.tag: lambda _, x: x >= 0,
    Sketch.tag: lambda _, x: x.isfinite(),
    FloatChanges.tag: lambda _, x: x.isfinite(),
    FloatSteps.tag: lambda _, x: x.isfinite(),
    IfChanged.tag: lambda codec, x: _of_inner(codec, x),
}


def _is_of_broadcasts(codec: Codec) -> bool:
    """Whether ballots never have this codec: a receiver with the reference reads what is coded without it, too."""
    return isinstance(codec, IfChanged | FloatChanges | FloatSteps) or (
        isinstance(codec, Tallies | Levels) and (codec.reference is not None or codec.start is not None)
    )


@dataclass(frozen=True, eq=False)
class Case:
    """A message, what it is sent by, and its honest frame."""

    name: str
    header: Header
    codecs: Mapping[str, Codec]
    message: Message
    frame: bytes = field(init=False)
    tensors: list[tuple[int, int]] = field(init=False)  # where each one's head begins, and its payload ends

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", pack(self.header, self.message, self.codecs))
        tensors, at = [], HEAD.size
        for _ in self.codecs:
            end = at + TENSOR.size + TENSOR.unpack_from(self.frame, at)[2]
            tensors.append((at, end))
            at = end
        object.__setattr__(self, "tensors", tensors)


class Fault(AssertionError):
    """A frame that was not decoded as it should be."""


def _of_inner(codec: Codec, x: Tensor) -> Tensor:
    assert isinstance(codec, IfChanged)
    return VALID[codec.sent.tag](codec.sent, x)


def _of_alphabet(codec: Codec, x: Tensor) -> Tensor:
    assert isinstance(codec, EntropyVotes)
    return torch.isin(x, torch.tensor(codec.alphabet))


# Mutations: (random numbers, a frame with or without its checksum, its case, another case) -> the mutated frame

Mutation = Callable[[random.Random, bytes, Case, Case], bytes]


def _place(rng: random.Random, data: bytes) -> int:
    """Mostly beyond the head, whose every byte is compared anyway."""
    return rng.randrange(0 if rng.random() < 0.2 else HEAD.size, len(data))


def flip(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """Up to eight bits."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        mutated[_place(rng, data)] ^= 1 << rng.randrange(8)
    return bytes(mutated)


def change(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """Up to four bytes."""
    mutated = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        mutated[_place(rng, data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))
    return bytes(mutated)


def cut(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """The end, or something in between."""
    start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return data[:start] + data[rng.choice((end, len(data), start + 1)) :]


def extend(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """More at the end, or in between."""
    at = rng.choice((len(data), rng.randrange(len(data) + 1)))
    more = rng.randbytes(rng.choice((1, 2, 4, 9, 100)))
    return data[:at] + rng.choice((more, bytes(len(more)))) + data[at:]


def splice(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """The beginning of one frame and the end of another, or its payload in the place of ours."""
    (at, end), (start, stop) = rng.choice(case.tensors), rng.choice(other.tensors)
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data) + 1)] + other.frame[rng.randrange(len(other.frame) + 1) :]
    return data[:at] + other.frame[start:stop] + data[end:]


def head(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """A frame of something else: another magic, version, round, client, model, method or number of tensors."""
    fields = list(HEAD.unpack_from(data))
    which = rng.randrange(len(fields))
    if isinstance(fields[which], bytes):
        fields[which] = rng.choice((rng.randbytes(len(fields[which])), b"", b"\xff" * 16, other.header.method.encode()))
    else:
        low, high = {1: (0, 2**16 - 1), 2: (0, 2**32 - 1), 3: (-(2**31), 2**31 - 1)}.get(which, (0, 255))
        fields[which] = rng.choice((low, high, min(fields[which] + 1, high), rng.randint(low, high)))
    if rng.random() < 0.1:
        fields[2], fields[3] = abs(fields[3]), fields[2] & 0x7FFFFFFF
    return HEAD.pack(*fields) + data[HEAD.size :]


def claim(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """A tensor of another codec, count or length than it has."""
    at, _ = rng.choice(case.tensors)
    tag, count, size = TENSOR.unpack_from(data, at)
    lie = rng.choice((0, 1, count, size, 4 * size, 2**16, 2**31 - 1, 2**31, 2**32 - 1, rng.randrange(2**32)))
    lies = (lie & 0xFF, count, size), (tag, lie, size), (tag, count, lie), (tag, size, count), (tag, lie, lie)
    return data[:at] + TENSOR.pack(*rng.choice(lies)) + data[at + TENSOR.size :]


def swap(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """Two tensors in each other's place, or two stretches of bytes."""
    if len(case.tensors) > 1:
        (a, b), (c, d) = sorted(rng.sample(case.tensors, 2))
    else:
        a, b, c, d = sorted(_place(rng, data) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def payload(rng: random.Random, data: bytes, case: Case, other: Case) -> bytes:
    """Any other payload, with a head that fits it: what the codecs themselves must refuse."""
    at, end = rng.choice(case.tensors)
    tag, count, _ = TENSOR.unpack_from(data, at)
    old = data[at + TENSOR.size : end]
    noise = rng.randbytes(rng.choice((len(old), len(old), rng.randrange(2 * len(old) + 9))))
    keep = rng.choice((1, 5, rng.randrange(len(old) + 1)))
    new = rng.choice(
        (noise, bytes(len(noise)), b"\xff" * len(noise), old[:keep] + noise[keep:], old[:keep], old + noise)
    )
    return data[:at] + TENSOR.pack(tag, count, len(new)) + new + data[end:]


MUTATIONS: dict[str, Mutation] = {
    "flip": flip,
    "change": change,
    "cut": cut,
    "extend": extend,
    "splice": splice,
    "head": head,
    "claim": claim,
    "swap": swap,
    "payload": payload,
}


# Honest messages


def honest(seed: int = 0) -> list[Case]:
    """Small messages of every codec, and of the kinds that methods send."""
    rng = Key(seed).torch("fuzz")

    def levels(count: int, high: int) -> Tensor:
        """Low ones oftener than high ones."""
        return (torch.rand(count, generator=rng) ** 4 * high).to(torch.int16)

    def floats(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    def entropy(alphabet: tuple[int, ...], count: int, contexts: int) -> tuple[Codec, Tensor]:
        """Votes as the levels have it: nearly all of one kind in the lowest and the highest."""
        V, level = len(alphabet), torch.randint(contexts, (count,), generator=rng, dtype=torch.int16)
        p = np.linspace(0.02, 0.98, contexts)
        expected = np.stack([1 - p, p] if V == 2 else [(1 - p) ** 2, 2 * p * (1 - p), p**2], 1)
        drawn = torch.rand(count, generator=rng, dtype=torch.float64)[:, None]
        digit = (drawn > torch.from_numpy(expected.cumsum(1)[:, :-1])[level.long()]).sum(1)
        return EntropyVotes(alphabet, level, expected), torch.tensor(alphabet, dtype=torch.int8)[digit]

    messages: list[dict[str, tuple[Codec, Tensor]]] = []
    for n in (0, 1, 7, 40, 203):
        messages.append({"binary": (Binary(n), (levels(n, 2) * 2 - 1).to(torch.int8))})
        messages.append({"ternary": (Ternary(n), (levels(n, 3) - 1).to(torch.int8))})
        messages += [{"integers": (Integers(n), levels(n, high))} for high in (1, 6, 32767)]
        messages += [{"tallies": (Tallies(n), levels(n, high))} for high in (1, 6, 32767)]
        messages.append({"float32": (Float32(n), floats(n))})
        messages.append({"sketch": (Sketch(3, n), floats(3, n))})
        for alphabet in ((-1, 1), (-1, 0, 1)):
            messages += [{"entropy": entropy(alphabet, n, contexts)} for contexts in (1, 2, 6)]
    for alphabet in ((-1, 1), (-1, 0, 1)):
        messages.append({"entropy": entropy(alphabet, 900, 6)})
        messages.append({"votes": entropy(alphabet, 300, 3), "float": (Float32(6), floats(6))})  # FedVote, up
        messages.append({"votes": entropy(alphabet, 90, 90)})
    down = {"level": (Tallies(300), levels(300, 5)), "levels": (Integers(1), torch.tensor([5], dtype=torch.int16))}
    messages += [down, down | {"float": (Float32(6), floats(6))}]  # FedVote, down
    messages.append({"voted": (Float32(72), floats(72)), "float": (Float32(6), floats(6))})  # FedAvg
    for n in (700, 2000, 3000):  # FedVote, down to those who hold the round before
        held = levels(n, 5)
        messages.append({"tallies": (Tallies(n, held, 6), (held + levels(n, 1)).clamp(max=5))})
    for n in (0, 1, 40, 900):  # the same with few levels
        held, numbers = levels(n, 5), shared_random(Key(seed), n)
        messages.append({"level": (Levels(n), levels(n, 5))})
        messages += [{"level": (Levels(n, held, 6, u), (held + levels(n, 1)).clamp(max=4))} for u in (numbers, None)]
    for n in (2000, 3000):  # FedVote, down to those who hold nothing, and make the start of the seed
        since = Start(partial(levels, n, 4097), 4097)
        x = (since.numbers // 1366 + levels(n, 1)).clamp(max=2)
        messages += [{"level": (kind(n, start=since), x)} for kind in (Tallies, Levels)]
    for n in (1, 9, 70, 200):
        held = floats(n)
        away = held - 0.5 * (2 * levels(n, 1) - 1)
        messages += [
            {"moved": (FloatChanges(n, held, 0.5), x)} for x in (floats(n), away, held - 0.5 * (levels(n, 2) - 1))
        ]
        messages.append({"moved": (FloatChanges(n, held), torch.where(levels(n, 9) == 0, floats(n), held))})
        messages += [{"steps": (FloatSteps(n, 3, start), x)} for start in (held, None) for x in (floats(n), away)]
    start = levels(300, 5)
    messages += [{"known": (IfChanged(Tallies(300), start), x)} for x in (start, levels(300, 7))]
    return [_case(client, message) for client, message in enumerate(messages)]


def _case(client: int, message: dict[str, tuple[Codec, Tensor]]) -> Case:
    header = Header(7, client, b"\x01\x80model\xff", "FedVote")
    codecs, values = {n: codec for n, (codec, _) in message.items()}, {n: x for n, (_, x) in message.items()}
    return Case(f"{client}: {', '.join(f'{n} ({c.count})' for n, c in codecs.items())}", header, codecs, values)


# Decoding, and what is asked of it


def fuzz(cases: Sequence[Case], frames: int, seed: int = 0) -> Counter[tuple[str, str, str]]:
    """How often each (mutation, checksum, outcome) came up; Fault at the first frame that does not pass."""
    rng = random.Random(seed)
    counts: Counter[tuple[str, str, str]] = Counter()
    costs = {case.name: _cost(case, case.frame) for case in cases for _ in range(2)}  # caches are filled by the first
    resident = _resident_bytes()
    with _alarm():
        for number in range(frames):
            case, other = rng.choice(cases), rng.choice(cases)
            checksum = KEPT if rng.random() < 0.25 else FITTED
            name = rng.choice(list(MUTATIONS))
            frame = MUTATIONS[name](rng, case.frame if checksum == KEPT else case.frame[: -CHECKSUM.size], case, other)
            if checksum == FITTED:
                frame += CHECKSUM.pack(zlib.crc32(frame))
            signal.setitimer(signal.ITIMER_REAL, SECONDS_A_FRAME)
            try:
                outcome = _outcome(case, frame, checksum)
                if number % MEASURED == 0:
                    _check_cost(costs[case.name], _cost(case, frame), len(frame))
                if number % (20 * MEASURED) == 0 and _resident_bytes() > resident + SPARE_RESIDENT_BYTES:
                    raise Fault(f"the process grew by {_resident_bytes() - resident} bytes")
            except Exception as error:
                where = f"seed {seed}, frame {number}, case {case.name}, {name}, checksum {checksum}"
                raise Fault(f"{type(error).__name__}: {error}\n{where}\n{frame.hex()}") from error
            counts[name, checksum, outcome] += 1
    return counts


def _outcome(case: Case, frame: bytes, checksum: str) -> str:
    try:
        message = unpack(frame, case.header, case.codecs)
    except WireError:
        if frame == case.frame:
            raise
        return REFUSED
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of compiled libraries are no Exceptions
        raise Fault(f"decoding raised {type(error).__name__}: {error}") from error
    if frame == case.frame:
        _check_same(message, case.message)
        return UNCHANGED
    if checksum == KEPT:
        raise Fault("a damaged frame was accepted")
    _check_accepted(case, message, frame)
    return ACCEPTED


def _check_accepted(case: Case, message: Message, frame: bytes) -> None:
    if frame[: HEAD.size] != case.frame[: HEAD.size]:
        raise Fault("a frame with another head was accepted")
    for name, codec in case.codecs.items():
        got, want = message[name], case.message[name]
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            raise Fault(f"{name} is {got.dtype} of {tuple(got.shape)}, expected {want.dtype} of {tuple(want.shape)}")
        if not bool(VALID[codec.tag](codec, got).all()):
            raise Fault(f"{name} has values that codec {codec.tag} does not carry")
    again = pack(case.header, message, case.codecs)
    if again != frame:
        if not any(map(_is_of_broadcasts, case.codecs.values())):
            raise Fault("an accepted frame is not the one that its message is written as")
        _check_same(unpack(again, case.header, case.codecs), message)


def _check_same(got: Message, want: Message) -> None:
    if list(got) != list(want) or not all(torch.equal(got[name], want[name]) for name in want):
        raise Fault("a message was not decoded to itself")


@dataclass(frozen=True)
class Cost:
    peak_bytes: int  # of what Python and numpy allocate
    calls: int


def _cost(case: Case, frame: bytes) -> Cost:
    """What decoding costs, apart from the time."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    tracemalloc.start()
    sys.setprofile(count)
    try:
        unpack(frame, case.header, case.codecs)
    except WireError:
        pass
    finally:
        sys.setprofile(before)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return Cost(peak_bytes, calls)


def _check_cost(honest: Cost, got: Cost, size: int) -> None:
    if got.peak_bytes > MULTIPLE * (honest.peak_bytes + size) + SPARE_BYTES:
        raise Fault(f"{got.peak_bytes} bytes allocated for {size} bytes, where an honest frame takes {honest}")
    if got.calls > MULTIPLE * honest.calls + SPARE_CALLS:
        raise Fault(f"{got.calls} calls for {size} bytes, where an honest frame takes {honest}")


def _resident_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"a frame took more than {SECONDS_A_FRAME} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.codecs.fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    start = time.perf_counter()
    try:
        counts = fuzz(honest(given.seed), given.frames, given.seed)
    except Fault as fault:
        raise SystemExit(f"{fault}") from fault
    columns = [(KEPT, REFUSED), (KEPT, UNCHANGED), (FITTED, REFUSED), (FITTED, ACCEPTED), (FITTED, UNCHANGED)]
    print("mutation".ljust(10) + "".join(f"{checksum} {outcome}".rjust(20) for checksum, outcome in columns))
    for name in MUTATIONS:
        print(name.ljust(10) + "".join(f"{counts[name, *column]:20,}" for column in columns))
    seconds = time.perf_counter() - start
    total = sum(counts.values())
    print(f"{total:,} frames, seed {given.seed}, {seconds:.1f} s, {total / seconds:,.0f} a second: all passed")


if __name__ == "__main__":
    main()
