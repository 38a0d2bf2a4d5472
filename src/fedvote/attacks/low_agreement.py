"""Low agreement: against the plurality where honest clients agree least. Knows every honest message.

Each attacker trains and votes honestly, except on the share of weights on which the honest plurality leads by least.
There all attackers vote against it. Few honest votes have to be outvoted for each of these weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.attacks.collusion import against, partly
from fedvote.core import Message


@dataclass(frozen=True)
class LowAgreement(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    share: float = 0.2  # of the weights

    def __post_init__(self) -> None:
        check_share(self.share)

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            against_N, order_N = against(seen, name)
            flips_n = order_N[: round(self.share * len(order_N))]
            sent[name] = torch.stack([partly(own_N, against_N, flips_n) for own_N in seen.own[name]])
        return sent
