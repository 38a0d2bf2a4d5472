"""Inner-product manipulation: minus epsilon times the mean of the honest updates. Knows every honest message.

Xie, Koyejo and Gupta, 2020. A small epsilon stays close to honest updates, and enough attackers still turn the sum
round; a large one overwhelms a mean, and is easily seen. An update is what changed since the broadcast: to clients
that send models the attack is start - epsilon (mean - start), and minus epsilon times the mean model would be another.

Votes are drawn, by each attacker for itself, so that their mean is this too, clipped to [-1, 1]; the start is then the
soft vote that was broadcast, or 0 for the sign of an update. Expectation is all that a tally knows, so the inner
product of what attackers add and what honest clients do is negative here as there; but epsilon no longer hides them:
a vote for a small step back is as loud as any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import sent_about
from fedvote.core import Message
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class InnerProduct(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    epsilon: float = 0.5  # how far back, in steps of the honest clients

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise ConfigError(f"epsilon is {self.epsilon}, expected a finite number above 0")

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        for name in seen.bulk:
            start, mean_N = seen.unmoved.get(name, 0), seen.honest[name].float().mean(0)

            # theta - epsilon (1 / G sum_m theta_m - theta)
            sent[name] = sent_about(start - self.epsilon * (mean_N - start), seen.own[name], seen.keys, name)
        return sent
