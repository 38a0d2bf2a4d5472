"""Random perturbation: votes at random, or Gaussian updates with the mean and deviation of honest ones (Section VI).

Knows its own message alone, and takes the statistics from it. Whole numbers with a scale are resampled from the own
message and get random signs, so the update is about as long as an honest one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.core import Message


@dataclass(frozen=True)
class Random(Attack):
    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            rows, start_N = zip(seen.own[name], seen.keys, strict=True), seen.start(name)
            sent[name] = torch.stack(
                [_noise(row, start_N, bool(seen.scales), key.torch(f"attack {name}", row.device)) for row, key in rows]
            )
        return sent


def _noise(row: Tensor, start_N: Tensor, scaled: bool, generator: torch.Generator) -> Tensor:
    if row.is_floating_point():
        update = row - start_N
        return start_N + update.mean() + update.std() * torch.randn(row.shape, generator=generator, device=row.device)
    if scaled:
        drawn: Tensor = row[torch.randint(len(row), row.shape, generator=generator, device=row.device)]
        return torch.where(torch.rand(row.shape, generator=generator, device=row.device) < 0.5, drawn, -drawn)
    values: Tensor = row.unique()
    return values[torch.randint(len(values), row.shape, generator=generator, device=row.device)]
