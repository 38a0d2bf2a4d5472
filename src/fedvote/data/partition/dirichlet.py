"""Uneven classes, even sizes: each client draws its mixture of classes from a Dirichlet distribution.

T.-M. H. Hsu, H. Qi, M. Brown: Measuring the effects of non-identical data distribution for federated visual
classification, 2019, section 3. The smaller alpha, the fewer classes a client has.

Every example has one client and sizes are even, so clients get milder mixtures than they draw. With 31 clients and ten
classes, a client's largest class has on average 54 % of its examples with alpha = 0.1 (66 % were drawn) and 36 % with
0.5 (39 % were drawn). clients.json has the actual counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedvote.core import Dataset
from fedvote.data.partition.base import Partition
from fedvote.data.strata import strata
from fedvote.errors import DataError
from fedvote.settings import check_above_zero, check_at_least

TURN = 8  # examples that a client draws before the next client
NEGLIGIBLE = 1e-12  # with less weight on the remaining classes, a mixture cannot choose among them


@dataclass(frozen=True)
class Dirichlet(Partition):
    alpha: float = 0.5  # the smaller, the fewer classes a client has
    min_samples: int = 0  # fewer for any client are an error

    def __post_init__(self) -> None:
        check_above_zero(self, "alpha")
        check_at_least(self, min_samples=0)

    def split(self, data: Dataset, clients: int, rng: np.random.Generator) -> list[np.ndarray]:
        if len(data.train) // clients < self.min_samples:
            have = f"{len(data.train)} samples give {clients} clients {len(data.train) // clients} each"
            raise DataError(f"{have}, min_samples is {self.min_samples}: ask for fewer clients or a lower min_samples.")
        y, groups = strata(data)
        # q_m ~ Dir(alpha 1_C)
        mixtures_NC = rng.dirichlet(np.full(len(groups), self.alpha), size=clients)
        sizes_N = np.array([len(part) for part in np.array_split(y, clients)])
        counts_NC = take_turns(mixtures_NC, sizes_N, np.bincount(y, minlength=len(groups)), rng)
        return deal(y, counts_NC, rng)


def take_turns(
    mixtures_NC: np.ndarray, sizes_N: np.ndarray, pool_C: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """(N, C): how many examples of each class each client gets.

    Clients draw a few examples at a time, in a new order each round, so they all meet empty classes at the same time.
    Drawn client by client, the last ones would get only leftovers.
    """
    counts_NC = np.zeros(mixtures_NC.shape, dtype=np.int64)
    left_C, wanted_N = pool_C.copy(), sizes_N.copy()
    while wanted_N.any():
        for client in rng.permutation(np.flatnonzero(wanted_N)):
            drawn_C = draw(mixtures_NC[client], left_C, min(TURN, wanted_N[client]), rng)
            counts_NC[client] += drawn_C
            left_C -= drawn_C
            wanted_N[client] -= drawn_C.sum()
    return counts_NC


def draw(mixture_C: np.ndarray, left_C: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Class counts of `number` draws from the mixture, renormalised over the remaining classes."""
    drawn_C = np.zeros_like(left_C)
    while (missing := number - drawn_C.sum()) > 0:
        weights_C = mixture_C * (left_C > drawn_C)
        if weights_C.sum() < NEGLIGIBLE:
            weights_C = (left_C - drawn_C).astype(float)
        more_C = rng.multinomial(missing, weights_C / weights_C.sum())
        drawn_C = np.minimum(drawn_C + more_C, left_C)
    return drawn_C


def deal(y: np.ndarray, counts_NC: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Shuffle each class and give every client its count of it."""
    hands: list[list[np.ndarray]] = [[] for _ in counts_NC]
    for label, counts_N in enumerate(counts_NC.T):
        pool = rng.permutation(np.flatnonzero(y == label))
        for hand, part in zip(hands, np.split(pool, np.cumsum(counts_N)[:-1]), strict=True):
            hand.append(part)
    return [np.sort(np.concatenate(hand)) for hand in hands]
