"""Bits a weight and speed of ballots on the wire, beside numpy's packbits, zlib and zstd on the same ballots.

Recorded ballots show bits: client 0's in the rounds of a run, digits by default. `cohort_bits_per_weight` is the mean
of all clients of the round, headers included. Drawn ballots of VGG-7's size show the speed on one thread; their bits
depend on how they are drawn.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
import zstandard
from torch import Tensor

from fedvote.codecs import Binary, Ternary
from fedvote.studies.bench.ballots import Ballot, drawn, recorded
from fedvote.studies.bench.stopwatch import one_thread, seconds_of
from fedvote.studies.rows import Rows, chosen

WEIGHTS, CLIENTS = 13_000_000, 31
PRESET, ROUNDS = "quickstart", 8


def bench(
    preset: str = PRESET,
    set: Sequence[str] = (),
    rounds: int = ROUNDS,
    only: Sequence[str] = (),
    device: str = "auto",
    weights: int = WEIGHTS,
    cohort: int = CLIENTS,
    repeats: int = 3,
) -> Rows:
    """A row for each ballot and each way to send it; `only`: recorded, drawn. `device`: of the recorded run."""
    kinds: dict[str, Callable[[], Iterable[Ballot]]] = {
        "recorded": lambda: recorded(preset, set, rounds, device),
        "drawn": lambda: drawn(weights, cohort),
    }
    timed = {"recorded": 0, "drawn": repeats}
    names = chosen(only, kinds, "codec")
    with one_thread():
        return [row for name in names for ballot in kinds[name]() for row in _rows(ballot, timed[name])]


def _rows(ballot: Ballot, repeats: int) -> Rows:
    values, coded, weights = ballot.values, ballot.codec, len(ballot.values)
    plain = Binary(weights) if ballot.votes == "binary" else Ternary(weights)
    packed = plain.encode(values)
    zstd = zstandard.ZstdCompressor(), zstandard.ZstdDecompressor()
    ways: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Any]]] = {
        "entropy-coded": (lambda: coded().encode(values), lambda payload: coded().decode(payload)),
        "plain": (lambda: plain.encode(values), plain.decode),
        "plain, zlib": (lambda: zlib.compress(packed), lambda payload: plain.decode(zlib.decompress(payload))),
        "plain, zstd": (lambda: zstd[0].compress(packed), lambda payload: plain.decode(zstd[1].decompress(payload))),
    }
    if ballot.votes == "binary":
        ways["numpy packbits"] = (lambda: np.packbits(values.numpy() > 0).tobytes(), _unpackbits)
    about = {"ballot": ballot.origin, "weights": weights, "votes": ballot.votes}
    bits = {
        "cohort_bits_per_weight": ballot.cohort_bits,
        "entropy_bits_per_weight": entropy_bits(values, coded().context),
    }
    return [{**about, "way": name, **bits, **_measure(*way, weights, repeats)} for name, way in ways.items()]


def entropy_bits(ballot_D: Tensor, context_D: Tensor) -> float:
    """The entropy of a vote given its context, in bits: the lower bound of codes that know only the context."""
    joint = torch.bincount(context_D.long() * 3 + ballot_D.long() + 1).double()
    joint = torch.nn.functional.pad(joint, (0, -len(joint) % 3)).view(-1, 3)
    share = joint / joint.sum(1, keepdim=True).clamp_min(1)
    return float(-(joint * share.clamp_min(1e-300).log2()).sum() / len(ballot_D))


def _measure(
    encode: Callable[[], bytes], decode: Callable[[bytes], Any], weights: int, repeats: int
) -> dict[str, float | None]:
    """Bits, and the best seconds of so many repeats; without repeats, none."""
    payload = encode()
    return {
        "bits_per_weight": 8 * len(payload) / weights,
        "encode_seconds": min((seconds_of(encode) for _ in range(repeats)), default=None),
        "decode_seconds": min((seconds_of(lambda: decode(payload)) for _ in range(repeats)), default=None),
    }


def _unpackbits(payload: bytes) -> Any:
    return np.unpackbits(np.frombuffer(payload, np.uint8)).astype(np.int8) * 2 - 1
