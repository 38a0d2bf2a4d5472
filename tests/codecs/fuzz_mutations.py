"""Mutations: (random numbers, a frame with or without its checksum, its case, another case) -> the mutated frame."""

from __future__ import annotations

import random
from collections.abc import Callable

from fedvote.codecs.frame import HEAD, TENSOR
from tests.codecs.fuzz_messages import Case

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
