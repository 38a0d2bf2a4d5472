"""Disagreeing copycats: copy votes that oppose their sender's numbers. Knows every honest message and random number.

A server can draw the numbers by which a client rounds, and a vote that agrees with them shows whose it is. These
copycats leave such votes alone. They copy the others: the victim's rounding of the broadcast says -1 and its vote +1,
or the reverse. To draw a victim's numbers they have to know its key, which a server gives to nobody else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from fedvote.attacks.attack import Seen
from fedvote.attacks.collusion import alphabet_of
from fedvote.attacks.copycat import Copycat
from fedvote.quantize import round_by_shared_random


@dataclass(frozen=True)
class DisagreeingCopycat(Copycat):
    draws: ClassVar[bool] = True

    def eligible(self, seen: Seen, name: str, whose_D: Tensor) -> Tensor:
        victims_VD = seen.honest[name][: self.victims]
        start = seen.unmoved.get(name)
        if victims_VD.is_floating_point() or start is None:
            return super().eligible(seen, name, whose_D)
        keys = seen.honest_keys[: len(victims_VD)]
        expected_VD = round_by_shared_random(start.expand(victims_VD.shape), alphabet_of(victims_VD), keys)
        disagree_D = (victims_VD != expected_VD).gather(0, whose_D[None])[0]
        return disagree_D
