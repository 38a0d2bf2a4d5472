"""Cliques: a few clients that agree with each other alone, as clients with a backdoor's trigger in their inputs do.

The last voted layer tells classes apart; the layers before it learn what inputs look like. Honest clients with the same
classes agree in both. Clients that share a trigger agree before the last layer far more than they do in it. Let f_ij be
the agreement of two clients before the last layer, and b_ij in it, pooled over rounds. Of all pairs with about the same
b_ij, most are honest, so that their median and spread say how far f_ij is from what is usual:

    z_ij = (f_ij - median f) / spread of f

A group G of g clients has the score

    S(G) = sum of z_ij over its pairs / sqrt(g (g - 1) / 2)

which has a variance of 1 if pairs are independent. A clique scores far more than other small groups of the round, and
nobody else agrees with it. Honest clients with the same rare classes score as much, since no other pairs agree as they
do in the last layer. But they agree in both in proportion, along the line that all pairs follow. So a clique also has
to score beyond the line: with f_ij - s b_ij in place of f_ij, s the line's slope.

Honest clients with inputs of another kind are a clique, too: so only small ones are left out (`Camps.clique`), and a
larger group keeps its votes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.reputation.ballot_lines import common_counts, cosines, sum_of_work
from fedvote.reputation.client_pairs import MOST_CLIENTS, pair_sums
from fedvote.reputation.innovations import Part

KEPT = 0.9  # share of the older sums: a trigger shows in many rounds together
FEWEST_BALLOTS = 20  # among fewer, small groups of honest clients stand out as far
FEWEST_ROUNDS = 3  # that pairs have voted together; in the first ones all clients learn the same
USUAL = 8  # a pair is compared with one pair in so many: those that agree about as much in the last layer
LEAST_SCORE = 7.0  # of a clique; small groups of honest clients reach 3 to 5, with the same rare classes more
LEAST_PAIR = 12.0  # of a clique of two: a single pair is far from all others more easily by chance
FAR = 1.9  # how many times the score of the next small group a clique has
LEAST_BEYOND = 5.0  # of its score beyond the line; honest groups with the same rare classes reach 8, near the next
SEEDS = 40  # pairs from which groups are grown
LOOKED_AT = 2**25  # pairs beside others, at most: those of all pairs of 181 clients
BLOCK = 2**17  # of them in memory at a time
EQUAL = 1e-12  # a spread of rounding errors alone
NEAR = 0.3  # share of a clique's mean z from which on another client agrees with it


def no_kinship(clients: int) -> State:
    """The memory before round 1: agreement before the last layer and in it, and in how many rounds."""
    columns = clients if clients <= MOST_CLIENTS else 0
    return {name: torch.zeros(clients, columns) for name in ("front", "back", "together")}


def kinship(memory: State, clients_n: Tensor, found: Sequence[Part], stay: Tensor) -> State:
    """The memory of pairs after a round; `stay`: the rows of the clients.

    A ballot without innovations before the last layer, or in it, agrees with nobody there. Its pairs are not
    remembered: their equal values would make the spread of all pairs small, and turn the line.
    """
    front, back = ([part for part in found if part.last == last] for last in (False, True))
    worked_n = torch.stack([sum_of_work(each)[stay, 0] > 0 for each in (front, back) if each]).all(0)
    clients_n, stay = clients_n[worked_n.to(clients_n.device)], stay[worked_n]
    if not front or len(stay) < 3 or not memory["front"].shape[1]:
        return {name: memory[name] for name in ("front", "back", "together")}
    back_nn = cosines(common_counts(back)[stay][:, stay])

    # the noise of a cosine falls with the root of the number of weights, and z weighs by noise: so the root counts
    sizes = torch.tensor([part.jumps_Kn.shape[1] for part in front], dtype=torch.float64)
    roots, front_nn = (sizes / sizes.sum()).sqrt(), torch.zeros_like(back_nn)
    for root, part in zip(roots, front, strict=True):
        front_nn += usual_deviations(cosines(part.common(stay, stay))).mul_(root)
    new = {"front": front_nn, "back": back_nn, "together": torch.ones(())}
    return {name: pair_sums(memory[name], clients_n, now_nn, KEPT) for name, now_nn in new.items()}


def clique(memory: State, clients_n: Tensor, most: int) -> Tensor | None:
    """The rows of the clients that are a clique; None if there is none of at most so many."""
    if most < 2 or len(clients_n) < FEWEST_BALLOTS or not memory["front"].shape[1]:
        return None
    first, second = torch.triu_indices(len(clients_n), len(clients_n), 1)
    pairs = clients_n[first], clients_n[second]
    front_p, back_p, together_p = (memory[name][pairs].double().cpu() for name in ("front", "back", "together"))
    if together_p.median() < sum(KEPT**age for age in range(FEWEST_ROUNDS)) - 1e-3:
        return None
    met_p = together_p > 0  # of the other pairs nothing is known, so that nothing is unusual
    front_p, back_p = (sum_p[met_p] / together_p[met_p] for sum_p in (front_p, back_p))

    def deviations(front_p: Tensor) -> Tensor:
        """(n, n) z of all pairs, by these agreements before the last layer."""
        z_nn = torch.zeros((len(clients_n), len(clients_n)), dtype=torch.float64)
        z_nn[first[met_p], second[met_p]] = deviations_beside(front_p, back_p)
        return z_nn + z_nn.T

    z_nn = deviations(front_p)
    _, members = tightest_group(z_nn, most)
    if not stands_out(z_nn, members, most, LEAST_PAIR if len(members) == 2 else LEAST_SCORE):
        return None
    beyond_nn = deviations(front_p - slope(front_p, back_p) * back_p)
    if not stands_out(beyond_nn, members, most, LEAST_BEYOND):
        return None
    mean = float(z_nn[members][:, members].sum()) / (len(members) * (len(members) - 1))
    near_n = (z_nn[:, members].mean(1) > NEAR * mean).index_fill(0, members, True)
    return near_n.nonzero()[:, 0] if int(near_n.sum()) <= most else None


def usual_deviations(alike_nn: Tensor) -> Tensor:
    """Each pair's distance from the median pair, in robust standard deviations."""
    median, apart = usual(of_pairs(alike_nn))
    return (alike_nn - median).div_(apart)


def of_pairs(values_nn: Tensor) -> Tensor:
    """(P,) the values above the diagonal, row by row. Slices take less memory than indices of all pairs."""
    return torch.cat([row_n[first + 1 :] for first, row_n in enumerate(values_nn)])


def slope(front_p: Tensor, back_p: Tensor) -> float:
    """How much `front` rises with `back`, by Tukey's resistant line, which a few pairs cannot turn."""
    order_p, third = back_p.argsort(), max(len(back_p) // 3, 1)
    low, high = order_p[:third], order_p[-third:]

    # s = (median f of the last third - median f of the first) / (median b of the last third - median b of the first)
    rise, run = (float(each_p[high].median() - each_p[low].median()) for each_p in (front_p, back_p))
    return rise / run if run > EQUAL else 0.0


def deviations_beside(front_p: Tensor, back_p: Tensor) -> Tensor:
    """(P,) z of each pair's `front` among the pairs with about the same `back`.

    A window of neighbours in the order of `back` says what is usual. Of very many windows only some are looked at, and
    each pair takes the nearest.
    """
    order_p = back_p.argsort()
    count, width = len(order_p), max(len(order_p) // USUAL, 3)
    step = -(-count * width // LOOKED_AT)
    windows_vw = front_p[order_p].unfold(0, width, step)
    blocks = [usual(block_bw) for block_bw in windows_vw.split(max(1, BLOCK // width))]
    median_v, spread_v = (torch.cat(each) for each in zip(*blocks, strict=True))
    start_p = (torch.arange(count) - width // 2).clamp(0, count - width)
    nearest_p = ((start_p + step // 2) // step).clamp_max(len(windows_vw) - 1)
    z_p = (front_p[order_p] - median_v[nearest_p]) / spread_v[nearest_p]
    return torch.empty_like(z_p).index_copy(0, order_p, z_p)


def usual(values: Tensor) -> tuple[Tensor, Tensor]:
    """Median and spread along the last axis."""
    median = values.median(-1).values
    return median, spread(values - median[..., None])


def spread(apart: Tensor) -> Tensor:
    """Robust standard deviation of distances from a median, along the last axis.

    Infinite if half of the distances are zero, as where most ballots have no innovations: nothing is unusual then.
    """
    # 1.4826 median |x - median x|: the standard deviation of a normal distribution
    found = 1.4826 * apart.abs().median(-1).values
    return found.where(found > EQUAL, torch.inf)


def group_score(z_nn: Tensor, rows: Tensor) -> float:
    """S(G)."""
    pairs = len(rows) * (len(rows) - 1) / 2
    return float(z_nn[rows][:, rows].sum()) / 2 / math.sqrt(pairs)


def stands_out(z_nn: Tensor, members: Tensor, most: int, least: float) -> bool:
    """Whether a group scores at least so much, and far more than any group of the others."""
    others = torch.ones(len(z_nn), dtype=torch.bool).index_fill(0, members, False)
    next_score, _ = tightest_group(z_nn[others][:, others], most)
    return group_score(z_nn, members) >= max(least, FAR * next_score)


def tightest_group(z_nn: Tensor, most: int) -> tuple[float, Tensor]:
    """The largest score of a group of 2 to `most` clients, and its rows: grown from close pairs, a client at a time."""
    first, second = torch.triu_indices(len(z_nn), len(z_nn), 1)
    seeds = z_nn[first, second].argsort(descending=True)[:SEEDS]
    rows_s2 = torch.stack([first[seeds], second[seeds]], 1)
    total_s, each = z_nn[first, second][seeds], torch.arange(len(seeds))
    best, joined_sn = (float(total_s[0]), rows_s2[0]), z_nn[rows_s2].sum(1)
    for size in range(3, most + 1):
        joins_s = joined_sn.scatter(1, rows_s2, -torch.inf).argmax(1)
        total_s = total_s + joined_sn[each, joins_s]
        joined_sn = joined_sn + z_nn[joins_s]
        rows_s2 = torch.cat([rows_s2, joins_s[:, None]], 1)
        score_s = total_s / (size * (size - 1) / 2) ** 0.5
        top = int(score_s.argmax())
        best = max(best, (float(score_s[top]), rows_s2[top]), key=lambda found: found[0])
    return best[0], best[1].sort().values
