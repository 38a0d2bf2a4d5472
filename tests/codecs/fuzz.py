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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import torch
from torch import Tensor

from fedvote.codecs import (
    Binary,
    EntropyVotes,
    Float32,
    FloatChanges,
    FloatSteps,
    IfChanged,
    Integers,
    Levels,
    Sketch,
    Tallies,
    Ternary,
)
from fedvote.codecs.frame import CHECKSUM, HEAD, pack, unpack
from fedvote.core import Codec, Message
from fedvote.errors import WireError
from tests.codecs.fuzz_messages import Case, honest
from tests.codecs.fuzz_mutations import (
    MUTATIONS,
)

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


class Fault(AssertionError):
    """A frame that was not decoded as it should be."""


def _of_inner(codec: Codec, x: Tensor) -> Tensor:
    assert isinstance(codec, IfChanged)
    return VALID[codec.sent.tag](codec.sent, x)


def _of_alphabet(codec: Codec, x: Tensor) -> Tensor:
    assert isinstance(codec, EntropyVotes)
    return torch.isin(x, torch.tensor(codec.alphabet))


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
