"""Omniscient opposite: minus what the honest clients decide together (Appendix A-B). Knows every honest message.

Against votes it is minus the plurality of the honest ballots, against floats minus their mean; all attackers send it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen, bulk
from fedvote.core import Key, Message
from fedvote.quantize import plurality, tally


@dataclass(frozen=True)
class Omniscient(Attack):
    omniscient: ClassVar[bool] = True

    def tamper(self, seen: Seen) -> Message:
        opposite = {n: _opposite(seen.honest[n], seen.keys[0]).expand_as(seen.own[n]) for n in bulk(seen.own)}
        return seen.own | opposite


def _opposite(honest_GN: Tensor, key: Key) -> Tensor:
    if honest_GN.is_floating_point():
        return -honest_GN.mean(0)
    alphabet = tuple(honest_GN.unique().tolist())
    heads_G = torch.ones(len(honest_GN), device=honest_GN.device)
    shared = Key(key.seed, key.round)  # the same for every attacker
    return -plurality(tally(honest_GN, heads_G, alphabet), alphabet, shared.torch("attack tie", honest_GN.device))
