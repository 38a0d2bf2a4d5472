"""Vulnerable votes: just enough votes to overturn a weight, where that is possible. Knows every honest message.

After VEM (Vulnerable Edge Manipulation, arXiv 2503.08976), which attacks federated ranking. H attackers can overturn a
weight on which the honest plurality leads by less than H votes. Elsewhere they vote honestly. For each such weight just
enough of them vote against the plurality, drawn anew, so that each attacker forges as few votes as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, check_share
from fedvote.attacks.collusion import against, flips, partly
from fedvote.core import Message
from fedvote.randomness import Key


@dataclass(frozen=True)
class VulnerableVotes(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    share: float = 1.0  # of all weights at most; the smallest leads first

    def __post_init__(self) -> None:
        check_share(self.share)

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            own_HN, honest_GN = seen.own[name], seen.honest[name]
            if own_HN.is_floating_point():  # floats have no count to overturn
                against_N, order_N = against(seen, name)
                least_n = order_N[: round(self.share * len(order_N) / 2)]
                sent[name] = torch.stack([partly(own_N, against_N, least_n) for own_N in own_HN])
            else:
                sent[name] = self.overturned(own_HN, honest_GN, seen.shared)
        return sent

    def overturned(self, own_HN: Tensor, honest_GN: Tensor, key: Key) -> Tensor:
        """The attackers' own votes, with as few changes as make the loser win."""
        H, N = own_HN.shape
        winner_N, loser_N, order_N = flips(honest_GN, key, "weakest")
        lead_N = (honest_GN == winner_N).sum(0) - (honest_GN == loser_N).sum(0)

        # a votes for the loser and H - a for the winner overturn a lead l if 2 a - H > l
        needed_N = (H + lead_N) // 2 + 1
        vulnerable_N = (needed_N <= H) & torch.zeros_like(needed_N, dtype=torch.bool).index_fill(
            0, order_N[: round(self.share * N)], True
        )

        # attackers whose own vote is the loser already come first, the others in random order
        random_HN = torch.rand((H, N), generator=key.torch("attack order", own_HN.device), device=own_HN.device)
        place_HN = (random_HN + (own_HN != loser_N)).argsort(0).argsort(0)
        return torch.where(vulnerable_N & (place_HN < needed_N), loser_N, own_HN)
