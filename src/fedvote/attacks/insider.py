"""Insider: as much harm as the reputation rule lets pass. Knows every honest message and random number, and the rule.

Each attacker trains and votes honestly, except on some weights, the same for all attackers. There it votes against the
honest plurality. The attackers find the number of these weights by trial: they run the server's rule on the round's
ballots, as if every client's reputation were new, and take the largest number that leaves none of them out. Without a
reputation rule every flip passes. No such rule judges floats: they are pushed as in min-max.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.collusion import Flip, alphabet_of, flips
from fedvote.attacks.min_max import pushed
from fedvote.core import Message
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Uniform

HALVINGS = 12  # steps of the search for the number of flips


@dataclass(frozen=True)
class KnownKeys(Key):
    """The server's key as an insider knows it: without the secret of the run, but with every client's key."""

    clients: tuple[Key, ...] = ()

    def of(self, client: int) -> Key:
        return next(key for key in self.clients if key.client == client)


@dataclass(frozen=True)
class Insider(Attack):
    omniscient: ClassVar[bool] = True
    joint: ClassVar[bool] = True
    draws: ClassVar[bool] = True
    flip: Flip = "weakest"  # flip votes where the plurality leads by least; or "strongest": by most

    def tamper(self, seen: Seen) -> Message:
        sent = dict(seen.own)
        floats = {name: seen.honest[name] for name in seen.bulk if seen.own[name].is_floating_point()}
        for name, vector in pushed(floats, seen.unmoved, "unit").items():
            sent[name] = vector.expand_as(seen.own[name])
        for name in seen.bulk:
            if name not in floats:
                sent[name] = self.flipped(name, seen)
        return sent

    def flipped(self, name: str, seen: Seen) -> Tensor:
        own_HN, honest_GN = seen.own[name], seen.honest[name]
        _, loser_N, order_N = flips(honest_GN, seen.shared, self.flip)

        def forged(count: int) -> Tensor:
            flips_n = order_N[:count]
            return own_HN.index_copy(1, flips_n, loser_N[flips_n].expand(len(own_HN), -1))

        # bisection for the largest number of flips with which all attackers keep a weight
        most, too_many = 0, len(order_N) + 1
        for _ in range(HALVINGS):
            count = (most + too_many) // 2
            if self.passes(forged(count), honest_GN, seen, name):
                most = count
            else:
                too_many = count
        return forged(most)

    def passes(self, forged_HN: Tensor, honest_GN: Tensor, seen: Seen, name: str) -> bool:
        """Whether the server's rule gives every attacker a weight."""
        rule = seen.rule or Uniform()
        votes_KN = torch.cat([forged_HN, honest_GN])
        keys = (*seen.keys, *seen.honest_keys[: len(honest_GN)])
        clients = [key.client for key in keys]
        clients_K = torch.tensor(clients, device=votes_KN.device)
        start_N = seen.start(name)
        numbers = max(*clients, *rule.trusted_clients) + 1  # trusted clients may be outside the round
        memory = {part: values.to(votes_KN.device) for part, values in rule.init(numbers).items()}
        layers = tuple(part.stop - part.start for part in seen.layers.values()) if rule.by_layer else ()
        ballots = Ballots(votes_KN, clients_K, start_N, alphabet_of(votes_KN), layers)
        known = KnownKeys(keys[0].seed, keys[0].round, clients=keys)
        return bool((rule.judge(memory, ballots, known).soft_K[: len(forged_HN)] > 0).all())
