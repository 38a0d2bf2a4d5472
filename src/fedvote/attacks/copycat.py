"""Copycats: copy honest votes until a round, then send the honest plurality's opposite. Knows every honest message.

It misleads rules that take similarity for honesty. The copied client looks like one of the copies. The other honest
clients look like outliers, lose their reputation, and cannot outvote the copycats later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.attacks.omniscient import Omniscient
from fedvote.core import Message
from fedvote.settings import check_at_least


@dataclass(frozen=True)
class Copycat(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    victims: int = 1  # honest clients to copy; each vote comes from one of them
    share: float = 1.0  # of the votes that are copied; the others are the copycat's own
    wakes: int = 4  # the first round of the opposite votes

    def __post_init__(self) -> None:
        check_at_least(self, victims=1, wakes=1)
        check_share(self.share)

    def tamper(self, seen: Seen) -> Message:
        if seen.keys[0].round >= self.wakes:
            return Omniscient().tamper(seen)
        return seen.own | {name: self._copies(seen, name) for name in seen.bulk}

    def _copies(self, seen: Seen, name: str) -> Tensor:
        own_HD, victims_VD = seen.own[name], seen.honest[name][: self.victims]
        generator = seen.shared.torch("copycat", own_HD.device)
        whose_D = torch.randint(len(victims_VD), own_HD.shape[1:], generator=generator, device=own_HD.device)
        drawn_D = torch.rand(own_HD.shape[1:], generator=generator, device=own_HD.device) < self.share
        copied_D = drawn_D & self.eligible(seen, name, whose_D)
        return torch.where(copied_D, victims_VD.gather(0, whose_D[None])[0], own_HD)

    def eligible(self, seen: Seen, name: str, whose_D: Tensor) -> Tensor:
        """(D,) which votes may be copied; `whose_D`: the number of the victim from whom each would be."""
        return torch.ones_like(whose_D, dtype=torch.bool)
