"""Late labels: honest until the last rounds, then wrong labels. Knows every honest message and random number.

Wrong labels from a good start move many weights far, and a rule would see that. So each attacker keeps only its
shortest innovations in each layer, as many as a usual honest client has, and votes elsewhere as if it had learned
nothing. Nobody is an opponent in the round in which they turn, and after the last round nobody can undo the harm.
Float models move as far as a usual honest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import alphabet_of
from fedvote.attacks.label_flip import LabelFlip
from fedvote.core import Message
from fedvote.quantize import ROUNDING, Alphabet
from fedvote.randomness import Key, as_uniform, shared_random
from fedvote.reputation.gaps import running_sum
from fedvote.reputation.innovations import jumps
from fedvote.settings import check_above_zero, check_at_least


@dataclass(frozen=True)
class LateLabels(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    starts: int = 19  # the first round with wrong labels: the last but one of 20
    work: float = 1.0  # innovations in a layer, and the sum of their jumps, relative to the median honest client

    def __post_init__(self) -> None:
        check_at_least(self, starts=1)
        check_above_zero(self, "work")

    def poison(self, labels_HB: Tensor, classes: int, keys: Sequence[Key]) -> Tensor:
        return LabelFlip().poison(labels_HB, classes, keys) if keys[0].round >= self.starts else labels_HB

    def tamper(self, seen: Seen) -> Message:
        if seen.keys[0].round < self.starts:
            return seen.own
        known = [name for name in seen.bulk if name in seen.unmoved]  # signs of gradients have no start: no innovations
        return seen.own | {name: self.modest(name, seen) for name in known}

    def modest(self, name: str, seen: Seen) -> Tensor:
        """The attackers' votes with no more work in a layer than that of the median honest client."""
        own_HN, honest_GN = seen.own[name], seen.honest[name]
        start_N = seen.start(name)
        if own_HN.is_floating_point():
            far_H1 = (own_HN - start_N).flatten(1).norm(dim=1, keepdim=True).clamp_min(1e-12)
            usual = self.work * (honest_GN - start_N).flatten(1).norm(dim=1).median()
            moved_HN: Tensor = start_N + ((own_HN - start_N).flatten(1) * usual / far_H1).view_as(own_HN)
            return moved_HN
        alphabet = alphabet_of(torch.cat([own_HN, honest_GN]))
        untrained_HN, own_jumps_HN = rounded(own_HN, start_N, alphabet, seen.keys)
        _, jumps_GN = rounded(honest_GN, start_N, alphabet, seen.honest_keys[: len(honest_GN)])
        sent_HN = untrained_HN.clone()
        for layer in seen.layers.values() or [slice(None)]:
            honest_Gn = jumps_GN[:, layer]
            number = self.work * float((honest_Gn > 0).sum(1).float().median())
            length = self.work * float(honest_Gn.sum(1).median())
            jumps_Hn, order_Hn = own_jumps_HN[:, layer].where(own_jumps_HN[:, layer] > 0, torch.inf).sort(1)
            first_n = torch.arange(1, jumps_Hn.shape[1] + 1, device=jumps_Hn.device) <= number
            fits_Hn = first_n & (running_sum(jumps_Hn.cpu()).to(first_n.device) <= length)
            kept_Hn = torch.zeros_like(fits_Hn).scatter(1, order_Hn, fits_Hn)
            sent_HN[:, layer] = torch.where(kept_Hn, own_HN[:, layer], untrained_HN[:, layer])
        return sent_HN


def rounded(votes_KN: Tensor, start_N: Tensor, alphabet: Alphabet, keys: Sequence[Key]) -> tuple[Tensor, Tensor]:
    """The votes that these clients would send had they learned nothing, and the lengths of their jumps."""
    untrained_KN, lengths_KN = torch.empty_like(votes_KN), torch.empty(votes_KN.shape, device=votes_KN.device)
    for row, key in enumerate(keys):
        u_N = as_uniform(shared_random(key, len(start_N), start_N.device))
        untrained_KN[row] = ROUNDING[alphabet](start_N, u_N)
        lengths_KN[row] = jumps(votes_KN[row], untrained_KN[row], start_N, u_N, alphabet).abs()
    return untrained_KN, lengths_KN
