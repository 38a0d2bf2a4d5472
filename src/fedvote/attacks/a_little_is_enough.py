"""A little is enough: the mean message minus z deviations. Knows the messages of the hostile clients, no others.

Baruch, Baruch and Goldberg, 2019. The attackers compute mean and deviation over their own honest messages. They shift
the mean as far as still hides them: of n clients, m of them hostile, they need s honest supporters for a majority, and
choose z so that s honest clients are expected to lie farther from the mean than they do:

    s = floor(n / 2 + 1) - m,    Phi(z) = (n - m - s) / (n - m)

Few attackers get z = 0, the mean itself. For a majority nothing bounds z, and it stops at Phi(z) = 0.999.
A single attacker sees no deviation and sends its own message. Models and updates give the same attack, since they
differ only by the common start.

Votes have no size, but each weight's votes have a mean mu and a deviation sigma over the attackers' ballots. Every
attacker draws its votes with mean mu - z sigma, clipped to [-1, 1]. That keeps the idea of the attack: a shift of all
weights that hides in the honest spread. Where all attackers agree, sigma is 0 and nothing is shifted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import sent_about, spread
from fedvote.core import Message
from fedvote.errors import ConfigError

LARGEST_SHARE = 0.999  # of Phi(z)


@dataclass(frozen=True)
class ALittleIsEnough(Attack):
    joint: ClassVar[bool] = True
    z: float | None = None  # deviations from the mean; not given: from the formula

    def __post_init__(self) -> None:
        if self.z is not None and not 0 <= self.z < math.inf:
            raise ConfigError(f"z is {self.z}, expected a finite number from 0 on; leave it out to have it computed")

    def tamper(self, seen: Seen) -> Message:
        z = hidden(seen.clients, len(seen.keys)) if self.z is None else self.z
        sent = dict(seen.own)
        for name in seen.bulk:
            mean_N, deviation_N = spread(seen.own[name])

            # mu - z sigma
            sent[name] = sent_about(mean_N - z * deviation_N, seen.own[name], seen.keys, name)
        return sent


def hidden(clients: int, hostile: int) -> float:
    """z: the deviations from the mean that this many hostile clients can hide."""
    # s = floor(n / 2 + 1) - m
    supporters = clients // 2 + 1 - hostile

    # Phi(z) = (n - m - s) / (n - m)
    share = 1 - supporters / max(1, clients - hostile)
    return NormalDist().inv_cdf(min(max(share, 0.5), LARGEST_SHARE))
