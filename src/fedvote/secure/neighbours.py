"""The graph of a session: which clients share masks, and help each other. Bell et al., 2020.

All pairs, or a circle in random order in which everybody has the k nearest as neighbours. With colluding clients
drawn at random, such a graph protects as all pairs do, with k that grows with the logarithm of the clients.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

ALL_PAIRS = 100  # clients up to which all pairs are neighbours by default
COLLUDING, VANISHING = Fraction(1, 10), Fraction(1, 3)  # shares of the clients that the default graph bears
LEAK, LOST_ROUND = 2.0**-40, 2.0**-20  # the most that the chances of a leak, and of a lost round, may be
SHARE_IN_GRAPH = 2 / 5  # t as a share of the helpers: lower than of all pairs, since chance picks them


def graph(cohort: Sequence[int], k: int, session: bytes) -> dict[int, list[int]]:
    """Client -> its neighbours, in ascending order. k: an even number; at least all others: all pairs."""
    if k >= len(cohort) - 1:
        return {client: [other for other in sorted(cohort) if other != client] for client in cohort}
    circle = sorted(cohort)
    random.Random(hashlib.sha256(b"circle" + session).digest()).shuffle(circle)
    near = [step for half in range(1, k // 2 + 1) for step in (half, -half)]
    return {
        client: sorted(circle[(place + step) % len(circle)] for step in near) for place, client in enumerate(circle)
    }


def is_connected(neighbours: Mapping[int, Sequence[int]], clients: Collection[int]) -> bool:
    """Whether masks connect these clients. If not, the masks of each part cancel on their own."""
    left = set(clients)
    edge = [left.pop()] if left else []
    while edge:
        found = left.intersection(neighbours[edge.pop()])
        left -= found
        edge += found
    return not left


def threshold_of(helpers: int, share: float) -> int:
    """t: the shares of a seed that give it, of so many helpers. At least two: one share alone would be the seed."""
    return max(min(2, helpers), math.floor(share * helpers + 1e-9))


@lru_cache
def default_degree(clients: int) -> int:
    """The least k with which a graph of so many clients is unlikely to fail."""
    if clients <= ALL_PAIRS:
        return clients - 1
    return next((k for k in range(2, clients - 1, 2) if _is_enough(clients, k)), clients - 1)


def _is_enough(clients: int, k: int) -> bool:
    leak, lost = failure(clients, k)
    return leak <= LEAK and lost <= LOST_ROUND


def failure(clients: int, k: int) -> tuple[float, float]:
    """Upper bounds on the chances that some ballot is not hidden, and that some seed cannot be put together."""
    colluding, vanishing, t = int(COLLUDING * clients), int(VANISHING * clients), threshold_of(k, SHARE_IN_GRAPH)
    too_many_colluders = clients * _at_least(clients - 1, colluding, k, t)
    # k/2 neighbours on one side are all gone: only then is a circle cut
    cut = clients * float(COLLUDING + VANISHING) ** (k // 2)
    too_few_helpers = clients * _at_least(clients - 1, vanishing, k, k - t + 1)
    return too_many_colluders + cut, too_few_helpers


def _at_least(others: int, marked: int, drawn: int, least: int) -> float:
    """The chance of `least` or more marked ones among those drawn without putting back (hypergeometric)."""
    ways = sum(
        math.comb(marked, hits) * math.comb(others - marked, drawn - hits)
        for hits in range(least, min(marked, drawn) + 1)
    )
    return float(Fraction(ways, math.comb(others, drawn)))
