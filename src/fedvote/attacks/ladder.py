"""Ladder: each attacker goes a step further than the one before. Knows every honest message.

The first attacker votes against the honest plurality on few weights, the next on some more, the last on the whole
share. Weights with the least agreement come first. A rule that looks for a gap between two groups finds none: the first
attackers stand among the honest clients, and each has a neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.attacks.collusion import against, partly
from fedvote.core import Message


@dataclass(frozen=True)
class Ladder(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    share: float = 0.3  # of the weights, for the last attacker

    def __post_init__(self) -> None:
        check_share(self.share)

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            own_HN = seen.own[name]
            against_N, order_N = against(seen, name)

            # attacker h of H flips (h + 1) / H of the share
            counts = [round(self.share * len(order_N) * (h + 1) / len(own_HN)) for h in range(len(own_HN))]
            steps = zip(own_HN, counts, strict=True)
            sent[name] = torch.stack([partly(own_N, against_N, order_N[:count]) for own_N, count in steps])
        return sent
