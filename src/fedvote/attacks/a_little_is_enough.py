"""A little is enough: what most clients send, less z deviations. Knows the messages of the hostile clients, no others.

Baruch, Baruch and Goldberg, 2019. The attackers take mean and deviation from what they themselves would have sent, and
go as far from the mean as leaves them closer to it than the honest clients they need for a majority. Of n clients, m
of them hostile, those are s, and z is where a normal distribution has as many honest clients as are left:

    s = floor(n / 2 + 1) - m,    Phi(z) = (n - m - s) / (n - m)

Few attackers get z = 0, the mean itself; where they are the majority nothing bounds z, and it stops at Phi(z) = 0.999.
One attacker alone sees no deviation, and sends what it would have sent. Models and updates come to the same, since the
start that they differ by is common to all.

A vote has no size, but its mean and deviation over the attackers' ballots do: they give the votes of each weight a
mean of mu - z sigma, clipped to [-1, 1], and every attacker draws its own. That keeps what the attack is about, a
shift of all weights one way that drowns in the honest clients' own spread. Where all attackers agree, sigma is 0 and
nothing is shifted.
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

LARGEST_SHARE = 0.999


@dataclass(frozen=True)
class ALittleIsEnough(Attack):
    joint: ClassVar[bool] = True
    z: float | None = None  # deviations from the mean; not given: by the formula

    def __post_init__(self) -> None:
        if self.z is not None and not 0 <= self.z < math.inf:
            raise ConfigError(f"z is {self.z}, expected a finite number from 0 on, or none to have it computed")

    def tamper(self, seen: Seen) -> Message:
        z = hidden(seen.clients, len(seen.keys)) if self.z is None else self.z
        sent = dict(seen.own)
        for name in seen.bulk:
            mean_N, deviation_N = spread(seen.own[name])

            # mu - z sigma
            sent[name] = sent_about(mean_N - z * deviation_N, seen.own[name], seen.keys, name)
        return sent


def hidden(clients: int, hostile: int) -> float:
    """z: how many deviations from the mean so many hostile clients can go."""
    # s = floor(n / 2 + 1) - m
    supporters = clients // 2 + 1 - hostile

    # Phi(z) = (n - m - s) / (n - m)
    share = 1 - supporters / max(1, clients - hostile)
    return NormalDist().inv_cdf(min(max(share, 0.5), LARGEST_SHARE))
