"""Inner-product manipulation: minus epsilon times the mean of the honest updates. Knows every honest message.

Xie, Koyejo and Gupta, 2020. A small epsilon stays close to honest updates, and enough attackers still reverse the
sum. A large one overwhelms a mean, and is easy to see. An update is the change since the broadcast: clients that send
models send start - epsilon (mean - start). Minus epsilon times the mean model would be a different attack.

Each attacker draws its votes with this mean, clipped to [-1, 1]. The start is then the broadcast soft vote, or 0 for
the sign of an update. A tally adds expectations, so the inner product of the attackers' and the honest clients' sums is
negative here too. But epsilon no longer hides attackers: a vote for a small step back is as large as any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import sent_about
from fedvote.core import Message
from fedvote.settings import check_above_zero


@dataclass(frozen=True)
class InnerProduct(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    epsilon: float = 0.5  # size of the step back, in honest steps

    def __post_init__(self) -> None:
        check_above_zero(self, "epsilon")

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            start_N, mean_N = seen.start(name), seen.honest[name].float().mean(0)

            # theta - epsilon (1 / G sum_m theta_m - theta)
            sent[name] = sent_about(start_N - self.epsilon * (mean_N - start_N), seen.own[name], seen.keys, name)
        return sent
