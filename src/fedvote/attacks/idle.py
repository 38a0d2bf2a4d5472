"""Idle attackers: some vote as if they had learned nothing, the others attack. Knows what that attack knows.

An idle ballot has no innovation, or with `work` random ones. Nobody is left out for too little work, so it counts. It
makes a rule that compares ballots with the spread of all, or that asks every client for its camp, blind to the others.
The attack inside is shown only what it declares to know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, narrowed
from fedvote.attacks.composite import Composite
from fedvote.attacks.longest_move import longest_move, untrained
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.single import SINGLE
from fedvote.core import Message
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Idle(Composite):
    joint: ClassVar[bool] = True  # its clients agree who attacks
    intention: Attack = field(default=Omniscient(), metadata={"registry": SINGLE})  # the attack of the others
    idle: int = 1  # hostile clients that vote as if untrained; one at least is left to attack
    work: float = 0.0  # random innovations of these, relative to their own honest ballots; 0: none
    common: float = 0.0  # share of the variance of their random directions that every two of them have in common

    def __post_init__(self) -> None:
        if not 0 <= self.common <= 1:
            raise ConfigError(f"common is {self.common}, expected a share from 0 to 1")
        if not 0 <= self.work < float("inf"):
            raise ConfigError(f"work is {self.work}, expected a finite number, 0 or above")
        check_at_least(self, idle=1)

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return self.intention.poison(labels_HB, classes, keys)

    def tamper(self, seen: Seen) -> Message:
        idle = min(self.idle, len(seen.keys) - 1)
        rows = range(idle, len(seen.keys))
        sent = {name: values.clone() for name, values in seen.own.items()}
        for name in seen.bulk:
            sent[name][:idle] = self.useless(seen, name, seen.keys[:idle])
        for name, values in self.intention.tamper(narrowed(seen, self.intention, rows)).items():
            sent[name][idle:] = values
        return sent

    def useless(self, seen: Seen, name: str, keys: Sequence[Key]) -> Tensor:
        """Messages of clients that learned nothing, or that moved the broadcast in a random direction of their own."""
        rows_HN = seen.own[name][: len(keys)]
        if not keys:
            return rows_HN
        start_N = torch.zeros_like(rows_HN[0], dtype=torch.float32) + seen.unmoved.get(name, 0)
        votes = not rows_HN.is_floating_point()
        idle_HN = untrained(rows_HN, start_N, keys) if votes else start_N.expand_as(rows_HN).to(rows_HN.dtype)
        if not self.work:
            return idle_HN
        noise_HN = torch.stack([self.direction(keys, row, start_N) for row in range(len(keys))])
        if not votes:
            # start + work |theta - start| z, with |z| near 1
            lengths_H = torch.stack([torch.linalg.vector_norm(row_N - start_N) for row_N in rows_HN])
            moved_HN = torch.stack([length * row_N for length, row_N in zip(lengths_H, noise_HN, strict=True)])
            sent_HN: Tensor = idle_HN + (self.work * moved_HN / start_N.numel() ** 0.5).to(rows_HN.dtype)
            return sent_HN
        allowed_H = (self.work * (rows_HN != idle_HN).sum(1)).tolist()
        parts = zip(rows_HN.split(1), noise_HN, allowed_H, keys, strict=True)
        return torch.cat([longest_move(own_1N, start_N, noise_N, most, [key]) for own_1N, noise_N, most, key in parts])

    def direction(self, keys: Sequence[Key], row: int, like_N: Tensor) -> Tensor:
        """A client's random direction of a round; it has a part in common with that of its neighbour."""
        own_N = noise(keys[row], "noise", like_N)
        if not self.common:
            return own_N
        pair_N = noise(keys[row - row % 2], "noise of two", like_N)

        # sqrt(1 - c) z + sqrt(c) z', with a variance of 1
        return own_N * math.sqrt(1 - self.common) + pair_N * math.sqrt(self.common)


def noise(key: Key, purpose: str, like_N: Tensor) -> Tensor:
    return torch.randn(like_N.shape, generator=key.torch(purpose, like_N.device), device=like_N.device)
