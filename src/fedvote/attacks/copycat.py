"""Copycats: send honest clients' votes until a round, the opposite of the honest after it. Knows every honest message.

A rule that takes likeness for honesty is led astray: whoever is copied looks like one of the copies, and those who are
not look like outsiders, lose their reputation, and are not missed when the copycats turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.omniscient import Omniscient
from fedvote.core import Message
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Copycat(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    victims: int = 1  # honest clients whose votes they take, each vote from one of them
    share: float = 1.0  # of the votes; the others are a copycat's own
    wakes: int = 4  # the first round in which they send the opposite of the honest

    def __post_init__(self) -> None:
        if self.victims < 1 or self.wakes < 1:
            raise ConfigError(f"victims is {self.victims} and wakes {self.wakes}, expected 1 or more of each")
        if not 0 <= self.share <= 1:
            raise ConfigError(f"share is {self.share}, expected a number from 0 to 1")

    def tamper(self, seen: Seen) -> Message:
        if seen.keys[0].round >= self.wakes:
            return Omniscient().tamper(seen)
        return seen.own | {name: self._copies(seen, name) for name in seen.bulk}

    def _copies(self, seen: Seen, name: str) -> Tensor:
        own_HD, victims_VD = seen.own[name], seen.honest[name][: self.victims]
        generator = seen.shared.torch("copycat", own_HD.device)
        whose_D = torch.randint(len(victims_VD), own_HD.shape[1:], generator=generator, device=own_HD.device)
        copied_D = torch.rand(own_HD.shape[1:], generator=generator, device=own_HD.device) < self.share
        return torch.where(copied_D, victims_VD.gather(0, whose_D[None])[0], own_HD)
