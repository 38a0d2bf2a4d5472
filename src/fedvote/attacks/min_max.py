"""Min-max: as far off as the two most distant honest clients are from each other. Knows every honest message.

Shejwalkar and Houmansadr, 2021. All attackers send one message. They push it away from the honest mean until its
largest distance to an honest message equals the largest between two honest ones. Floats move along a direction p:

    mean + gamma p,    gamma the largest with max_i ||mean + gamma p - theta_i|| <= max_ij ||theta_i - theta_j||

Each squared distance is quadratic in gamma, so the largest gamma is the smallest of their roots: no search is needed.
Of votes the attackers send the honest plurality with flips: as many as keep its largest Hamming distance to an honest
ballot within the largest between two. By default they flip where the plurality leads by least. Those flips are
cheapest: almost as many honest ballots come closer as move away, so most flips fit. And only those can change the
plurality. `flip = "strongest"` flips the clearest votes, which attackers below one half cannot overturn.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Literal

import torch
from torch import Tensor

from fedvote.aggregate.blocks import squared_distances
from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import Flip, flips, spread
from fedvote.core import Message
from fedvote.randomness import Key

Direction = Literal["unit", "std", "sign"]


@dataclass(frozen=True)
class MinMax(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    trains: ClassVar[bool] = False
    direction: Direction = "unit"  # against the mean update of floats; or "sign": its signs; or "std": their deviation
    flip: Flip = "weakest"  # flip votes where the plurality leads by least; or "strongest": by most

    def tamper(self, seen: Seen) -> Message:
        honest = {name: seen.honest[name] for name in seen.bulk}
        floats = {name: rows for name, rows in honest.items() if rows.is_floating_point()}
        forged = {n: flipped(honest[n], seen.shared, self.flip) for n in honest if n not in floats}
        forged |= pushed(floats, seen.unmoved, self.direction)
        return seen.own | {name: forged[name].expand_as(seen.own[name]) for name in honest}


def pushed(honest: Message, unmoved: Message, direction: Direction) -> Message:
    """The honest mean, pushed as far as honest clients are apart. Distances are over all tensors together."""
    mean, along = {}, {}
    for name, rows in honest.items():
        mean[name], deviation = spread(rows)
        update = mean[name] - unmoved.get(name, 0)
        along[name] = -{"std": deviation, "unit": update, "sign": update.sign()}[direction]
    if not honest:
        return {}
    gamma = reach(_flat(honest, 1), _flat(mean, 0), _flat(along, 0))
    return {name: mean[name] + gamma * along[name] for name in honest}


def reach(honest_GN: Tensor, mean_N: Tensor, along_N: Tensor) -> float:
    """gamma: the farthest point along p that is no farther from any honest client than two of them are apart."""
    widest = squared_distances(honest_GN, honest_GN).max()
    length = along_N.double().square().sum()
    if length == 0:
        return 0.0

    # ||a_i + gamma p||^2 = ||a_i||^2 + 2 gamma a_i p + gamma^2 ||p||^2, with a_i = mean - theta_i
    off_G = squared_distances(honest_GN, mean_N[None])[:, 0]
    dot_G = torch.stack([(mean_N - row).double() @ along_N.double() for row in honest_GN])

    # gamma_i = (-a_i p + sqrt((a_i p)^2 + ||p||^2 (widest^2 - ||a_i||^2))) / ||p||^2
    root_G = ((dot_G.square() + length * (widest - off_G)).clamp_min(0).sqrt() - dot_G) / length
    return max(0.0, float(root_G.min()))


def flipped(honest_GN: Tensor, key: Key, flip: Flip) -> Tensor:
    """The honest plurality with as many flips as keep it as close to honest ballots as they are to each other."""
    winner_N, loser_N, order_N = flips(honest_GN, key, flip)

    # d_i(k) = d_i(0) + sum over the first k flips of 1(w_i = winner) - 1(w_i = loser)
    farthest_N = torch.zeros(len(order_N) + 1, dtype=torch.int32, device=order_N.device)
    for votes_N in honest_GN:
        farther_N = (votes_N == winner_N).int() - (votes_N == loser_N).int()
        steps_N = torch.cat([(votes_N != winner_N).sum(dtype=torch.int32)[None], farther_N[order_N]])
        farthest_N = torch.maximum(farthest_N, steps_N.cumsum(0, dtype=torch.int32))

    # the largest k with max_i d_i(k) <= max_ij d_ij; no flips if the plurality itself is farther away
    widest = max((int((a != b).sum()) for a, b in combinations(honest_GN, 2)), default=0)
    within = (farthest_N <= widest).nonzero()
    flips_n = order_N[: int(within[-1]) if len(within) else 0]
    return winner_N.index_copy(0, flips_n, loser_N[flips_n])


def _flat(message: Message, axis: int) -> Tensor:
    """All tensors of a message as one, flattened from an axis on and joined there."""
    return torch.cat([values.flatten(axis) for values in message.values()], axis)
