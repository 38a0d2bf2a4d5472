"""Bits a weight and speed of ballots on the wire, beside numpy's packbits, zlib and zstd on the same ballots.

The ballots are random, not trained: soft votes of 31 clients come from Beta(0.3, 0.3), mostly near 0 or 1 as in
training; the ballot is of one more client, whose latent weights have moved by about 0.1.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import numpy as np
import torch
import zstandard
from torch import Tensor

from fedvote.codecs import Binary, Ternary
from fedvote.methods.ballot_wire import ballot_codec
from fedvote.methods.fedvote import FedVote, Votes
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from fedvote.studies.bench.stopwatch import one_thread, seconds_of
from fedvote.studies.rows import Rows

WEIGHTS, CLIENTS = 13_000_000, 31
MOVED = 0.1  # standard deviation of a latent weight's change in a turn


def bench(weights: int = WEIGHTS, cohort: int = CLIENTS, repeats: int = 3) -> Rows:
    """A row for each kind of votes and each way to send them, on one thread."""
    with one_thread():
        return [row for votes in get_args(Votes) for row in _rows(votes, weights, cohort, repeats)]


def _rows(votes: Votes, weights: int, clients: int, repeats: int) -> Rows:
    method = FedVote(votes=votes)
    levels = (len(method.alphabet) - 1) * clients + 1
    rng = Key(0).numpy("bench")
    level = torch.from_numpy(np.rint(rng.beta(0.3, 0.3, weights) * (levels - 1)).astype(np.int16))
    down = {"level": level, "levels": torch.tensor([levels - 1], dtype=torch.int16)}
    phi, key = method.normalisation, Key(0, 1, 0)
    moved = phi.inverse(method.soft(down)) + MOVED * torch.from_numpy(rng.normal(size=weights)).float()
    (ballot,) = round_by_shared_random(phi(moved)[None], method.alphabet, [key])
    coded = partial(ballot_codec, method.alphabet, down, key)  # made for every ballot, as in a run
    plain = Binary(weights) if votes == "binary" else Ternary(weights)
    packed = plain.encode(ballot)
    zstd = zstandard.ZstdCompressor(), zstandard.ZstdDecompressor()
    ways: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Any]]] = {
        "entropy-coded": (lambda: coded().encode(ballot), lambda payload: coded().decode(payload)),
        "plain": (lambda: plain.encode(ballot), plain.decode),
        "plain, zlib": (lambda: zlib.compress(packed), lambda payload: plain.decode(zlib.decompress(payload))),
        "plain, zstd": (lambda: zstd[0].compress(packed), lambda payload: plain.decode(zstd[1].decompress(payload))),
    }
    if votes == "binary":
        ways["numpy packbits"] = (lambda: np.packbits(ballot.numpy() > 0).tobytes(), _unpackbits)
    floor = entropy_bits(ballot, coded().context)
    return [
        {"votes": votes, "way": name, "entropy_bits_per_weight": floor, **_measure(*way, weights, repeats)}
        for name, way in ways.items()
    ]


def entropy_bits(ballot_D: Tensor, context_D: Tensor) -> float:
    """The entropy of a vote given its context, in bits: the lower bound of codes that know only the context."""
    joint = torch.bincount(context_D.long() * 3 + ballot_D.long() + 1).double()
    joint = torch.nn.functional.pad(joint, (0, -len(joint) % 3)).view(-1, 3)
    share = joint / joint.sum(1, keepdim=True).clamp_min(1)
    return float(-(joint * share.clamp_min(1e-300).log2()).sum() / len(ballot_D))


def _measure(
    encode: Callable[[], bytes], decode: Callable[[bytes], Any], weights: int, repeats: int
) -> dict[str, float]:
    payload = encode()
    return {
        "bits_per_weight": 8 * len(payload) / weights,
        "encode_seconds": min(seconds_of(encode) for _ in range(repeats)),
        "decode_seconds": min(seconds_of(lambda: decode(payload)) for _ in range(repeats)),
    }


def _unpackbits(payload: bytes) -> Any:
    return np.unpackbits(np.frombuffer(payload, np.uint8)).astype(np.int8) * 2 - 1
