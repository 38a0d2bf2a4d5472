"""Codecs 6, 12 and 13, read by decoders that were written from docs/wire-format.md alone: one number at a time."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np
import pytest
import torch
from constriction import stream

from fedvote.codecs import FloatSteps, Levels, Signed, Start
from fedvote.codecs.float_steps import each, exponents, moved
from fedvote.randomness import Key, as_uniform, shared_random


def made_whole(probabilities: list[float]) -> list[int]:
    ends, total = [], 0.0
    for probability in probabilities:
        total += probability
        ends.append(round(total * (65536 - len(probabilities))))  # Python rounds halves to even
    ends[-1] = 65536 - len(probabilities)
    return [1 + end - start for start, end in zip([0, *ends], ends, strict=False)]


def context_of(h: int, H: int, U: int, n: int) -> tuple[int, int, int]:
    """The context, the prediction, and the value beside it."""
    T = 2**24 * h * n // H
    r = -((U - T) // 2**24)
    g = 2**24 * r - (T - U)
    m = min(g, 2**24 - 1 - g)
    e = max(0, min(5, int(math.log2(m + 1)) - 18))
    return (12 * r + e, r, r + 1) if g < 2**23 else (12 * r + 11 - e, r, r - 1)


def read_levels(payload: bytes, held: list[int], H: int, numbers: list[int]) -> list[int]:
    crc, n = struct.unpack_from("<IB", payload, 1)
    assert payload[0] == 1 and crc == zlib.crc32(struct.pack(f"<{len(held)}h", *held))
    coder = stream.stack.AnsCoder(np.frombuffer(payload[6:], "<u4").astype(np.uint32))
    found = [context_of(h, H, U, n) for h, U in zip(held, numbers, strict=True)]
    x = [-1] * len(held)
    for context in sorted({one[0] for one in found}):
        places = [i for i, one in enumerate(found) if one[0] == context]
        _, r, beside = found[places[0]]
        counts = [1 / 64 + 4 * (v == r) + (v == beside) / 2 for v in range(n + 1)]
        start = 0
        while start < len(places):
            piece = places[start : start + max(32, start // 2)]
            shares = made_whole([count / sum(counts) for count in counts])
            model = stream.model.Categorical(np.array(shares) / 65536, perfect=False)
            for place, level in zip(piece, coder.decode(model, len(piece)).tolist(), strict=True):
                x[place] = level
                counts[level] += 1
            start += len(piece)
    assert coder.is_empty() and max(x) == n
    return x


@pytest.mark.parametrize(("before", "top"), [(4, 4), (2, 2), (4096, 4), (4, 2)])
@pytest.mark.parametrize("at_random", [True, False])
def test_few_levels(before: int, top: int, at_random: bool) -> None:
    generator = Key(top).torch("levels")
    held = torch.randint(before + 1, (3000,), generator=generator, dtype=torch.int16)
    U = shared_random(Key(before), 3000) if at_random else torch.full((3000,), 2**23, dtype=torch.int32)
    t = (held * (top / before) + 0.3 * torch.randn(3000, generator=generator)).clamp(0, top)
    x = (t - as_uniform(U)).ceil().clamp(0, top).to(torch.int16)
    payload = Levels(3000, held, before + 1, U if at_random else None).encode(x)
    assert read_levels(payload, held.tolist(), before, U.tolist()) == x.tolist()


def read_since_start(payload: bytes, start: list[int], L: int) -> list[int]:
    """Codec 12, mode 0, with codec 6, mode 3."""
    crc, n = struct.unpack_from("<IH", payload, 2)
    assert payload[:2] == b"\0\3" and crc == zlib.crc32(struct.pack(f"<{len(start)}h", *start))
    C = max(1, min(L, 64, len(start) // (256 * n)))
    context = [C * h // L for h in start]
    found = sorted(set(context))
    shares = np.frombuffer(payload, "<u2", len(found) * (n - 1), 8).reshape(len(found), n - 1)
    words = payload[8 + 2 * shares.size :]
    coder = stream.stack.AnsCoder(np.frombuffer(words, "<u4").astype(np.uint32))
    x = [-1] * len(start)
    for c, others in zip(found, shares.tolist(), strict=True):
        model = stream.model.Categorical(np.array([65536 - sum(others), *others]) / 65536, perfect=False)
        places = [i for i, one in enumerate(context) if one == c]
        for place, number in zip(places, coder.decode(model, len(places)).tolist(), strict=True):
            x[place] = number
    assert coder.is_empty() and max(x) == n - 1
    return x


@pytest.mark.parametrize("levels", [3, 5])
def test_levels_since_the_start(levels: int) -> None:
    generator = Key(levels).torch("levels")
    start = torch.randint(4097, (6000,), generator=generator, dtype=torch.int16)
    t = (start * ((levels - 1) / 4096) + 0.3 * torch.randn(6000, generator=generator)).clamp(0, levels - 1)
    x = t.round().to(torch.int16)
    payload = Levels(6000, start=Start(lambda: start, 4097)).encode(x)
    assert read_since_start(payload, start.tolist(), 4097) == x.tolist()


def test_steps_of_floats() -> None:
    generator = Key(0).torch("steps")
    held, change = torch.randn(1300, generator=generator), 0.01 * torch.randn(1300, generator=generator)
    exponent_b = exponents(change, 3, held)
    x = moved(held, exponent_b, (change / each(exponent_b, 1300)).round().clamp(-3, 3))
    payload = FloatSteps(1300, 3, held).encode(x)
    (crc,) = struct.unpack_from("<I", payload, 1)
    assert payload[0] == 1 and crc == zlib.crc32(held.numpy().astype("<f4").tobytes())
    steps = [2.0**e for e in struct.unpack_from("<3b", payload, 5)]
    levels = Signed(1300, 3).decode(payload[8:]).tolist()
    read = [np.float32(h) - np.float32(steps[i // 512]) * np.float32(levels[i]) for i, h in enumerate(held.tolist())]
    assert read == x.tolist()
