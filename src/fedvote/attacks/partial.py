"""Partial flip: inverts a share of the votes, or updates, drawn anew each round. Knows its own message alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.core import Message


@dataclass(frozen=True)
class Partial(Attack):
    share: float = 0.5  # of votes, or updates, to invert

    def __post_init__(self) -> None:
        check_share(self.share)

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            draws = [torch.rand(row.shape, generator=key.torch(f"attack {name}", row.device), device=row.device)
                    for row, key in zip(seen.own[name], seen.keys, strict=True)]  # fmt: skip
            inverted = seen.opposite(name, seen.own[name])
            sent[name] = torch.where(torch.stack(draws) < self.share, inverted, seen.own[name])
        return sent
