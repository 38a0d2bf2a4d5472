"""Honest messages for the fuzzer, of every codec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

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
from fedvote.codecs.frame import HEAD, TENSOR, pack
from fedvote.core import Codec, Message
from fedvote.randomness import Key, shared_random


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
