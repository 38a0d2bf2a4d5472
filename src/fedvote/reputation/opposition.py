"""Two camps that pull against each other, in the agreement of ballots pooled over rounds.

Clients that train on wrong labels vote as carefully as honest ones. But both camps undo each other's work in every
round: members of a camp agree, and members of different camps disagree. Let a_ij be the mean cosine between the
innovations of clients i and j in the rounds in which both voted. Two camps explain the share

    R^2 = 1 - residual / total

of the variance of all a_ij, if each pair is predicted by its mean over pairs within a camp, or between camps. Honest
clients with few classes differ in many directions, and two camps explain little. One round has much noise, and the
first rounds have more in common than the camps dispute, so that sums over rounds show more than a round can.

A small camp explains less, and may be honest clients with other inputs: it has to pull clearly. It loses that benefit
of the doubt if at least as many ballots of the round are forged: a team forges with some of its clients, and trains
on wrong labels with the others. Then half of that share of the variance suffices, if nearly all ballots pull against
the other camp, and if

    rho = between / sqrt(within * within')

is clearly negative: the cosine of the two camps' mean innovations, without the noise of single ballots.

Clients that swap the labels of few classes agree with all others on the other classes, so that two camps explain less.
A little more than half of the share suffices for them, too, if rho says that the camps' work nearly cancels. Late in
training each honest client pulls towards its own classes, and few of them can seem to be two camps whose work cancels:
the fewer the ballots, the larger the share.

Honest clients without the disputed classes belong to neither camp, and chance puts them into one. Near half of the
clients that chance would decide which camp is left out. So only clear members count when the majority is sought, unless
a dispute is sudden: one round has too much noise to tell who is clear.

Attackers near half who push the same weights round after round are most of what two camps explain. Beside them honest
clients seem to have no aim, and one honest client among the attackers makes them the majority. So a camp that agrees
far more than the other one may not accuse it, unless the other one pulls clearly.

In one layer (layer_pairs.py) the test is that of camps whose work cancels, and only clear members are left out. An
honest client that has learned all that a layer can learn has little to say there, and belongs to neither camp.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.reputation.client_pairs import LOYAL, Pairs, met_in
from fedvote.reputation.gaps import running_sum

FEWEST_BALLOTS = 7  # fewer are too easy to split: camps of random ballots explain as much
FEWEST_MEMBERS = 2  # a single client has no camp
EXPLAINED = (0.45, 2.5)  # opposing camps of K ballots explain this share of the variance: the first + the second / K
SMALL = 1 / 3  # share of the ballots in a small camp: honest clients with other inputs pull a little, and harm little
DISPUTED = 0.3  # camps that pull clearly have a cosine this far below zero, relative to the cosine within
SLIGHTLY = 0.1  # the same where the large camp would be left out, since the small one has most trusted clients
BESIDE_FORGERS = (0.5, 0.25)  # share of EXPLAINED that suffices beside forgers, and how far below zero rho is then
CANCELLED = (0.6, 0.55)  # the same of camps whose work cancels: honest ones explain less, or cancel less
BY_LAYER = (0.6, 0.45)  # the same in one layer alone: honest ones explain up to 0.5 there, or cancel less
MANY_BALLOTS = 30  # among which that share suffices
FEWER = 0.04  # how much larger it is for each ballot less: 20 to 24 honest clients on CIFAR-10 explain up to 0.7
NEARLY_ALL = 0.9  # share of the ballots that pull against the other camp in both cases
QUARTER = 1 / 4  # the smaller of two camps whose work cancels has more than this share of the ballots
TOGETHER = 2.0  # how many times as much agreement is far more: of known opponents in one layer, and of accusers
LONG = 8  # rounds in which clients have met, from which on a new dispute is a sudden turn
IDLE = 0.25  # share of a busy ballot's innovations, below which a ballot belongs to no camp of whole ballots
USUAL = 0.7  # share of a ballot's cosines, the smallest, by which it has an aim: the largest may be of a few friends
AIM = 0.5  # mean square of these cosines, from which on a ballot has an aim, relative to the median ballot's
CLEAR = 0.4  # how much more a clear member agrees with its own camp than with the other, relative to the mean


def still_opposed(pairs: Pairs, inside: Tensor, known_n: Tensor) -> Tensor:
    """Which of the ballots `inside` are known opponents who go on as before.

    While they are left out, nobody undoes their work: they agree with each other, and no longer disagree with all
    others, but have little in common with them. Opponents who repent agree with everybody alike. In one layer honest
    clients have little in common, too: there opponents have to be many, and to agree far more than all others do.
    """
    alike_KK, known_K = pairs.alike_nn[inside][:, inside], known_n[inside]
    fewest = max(FEWEST_MEMBERS, QUARTER * len(inside) if pairs.one_layer else 0)
    if int(known_K.sum()) < fewest or bool(known_K.all()):
        return torch.zeros_like(known_K)
    if pairs.one_layer and int((~known_K).sum()) > 1:
        with_each_other, others = (mean_within(alike_KK[side][:, side]) for side in (known_K, ~known_K))
        if with_each_other < TOGETHER * others:
            return torch.zeros_like(known_K)
    with_known_K = (alike_KK[:, known_K].sum(1) - alike_KK.diagonal()) / (known_K.sum() - 1)
    return known_K & (alike_KK[:, ~known_K].mean(1) < LOYAL * with_known_K)


def opposed_camp(pairs: Pairs, inside: Tensor) -> Tensor | None:
    """The larger of two camps that oppose each other among the ballots `inside`; None if there are no such camps.

    In one layer, where most honest ballots have little to say, it has all ballots but the clear members of the other.
    """
    K = len(inside)
    if K < FEWEST_BALLOTS:
        return None
    alike_KK = pairs.alike_nn[inside][:, inside]
    sides = two_camps(alike_KK)
    accused = pairs.accused(inside[sides[0]], inside[sides[1]])
    if min(map(len, sides)) < FEWEST_MEMBERS or (counts_K := counted(pairs, alike_KK, *sides, accused)) is None:
        return None
    for side, other in (sides, sides[::-1]):
        if pairs.outnumber(inside[side[counts_K[side]]], inside[other]):
            stay = without_opponents(alike_KK, side, other, counts_K) if pairs.one_layer else side
            return None if stay is None else inside[stay]
    return None


def without_opponents(alike_KK: Tensor, majority: Tensor, others: Tensor, clear_K: Tensor) -> Tensor | None:
    """All ballots but the clear opponents of the majority in one layer; None if nobody is to be left out there.

    Attackers near half can side with a few honest clients in a layer in which honest clients have little in common, to
    be the majority there and to frame all others. So those who agree with each other more may not accuse the others.
    """
    unclear = others[~clear_K[others]]
    within, accused = (mean_within(alike_KK[side][:, side]) for side in (majority, others))
    if within > accused or len(unclear) == len(others):
        return None
    return torch.cat([majority, unclear]).sort().values


def may_accuse(pairs: Pairs, camp: Tensor, others: Tensor) -> bool:
    """Whether the others pull clearly against a camp, or it does not agree far more than they do.

    A camp with trusted clients may, and in one layer there is a test of its own (`without_opponents`).
    """
    if pairs.one_layer or float(pairs.heads_n[camp].max()) > 1:
        return True
    within, of_others = (mean_within(pairs.alike_nn[side][:, side]) for side in (camp, others))
    return within <= TOGETHER * of_others or float(pairs.alike_nn[camp][:, others].mean()) < -DISPUTED * within


def counted(pairs: Pairs, alike_KK: Tensor, camp: Tensor, others: Tensor, accused: int) -> Tensor | None:
    """(K,) which ballots count in the search of the majority; None if the two camps do not oppose each other.

    `accused`: the number of ballots in the camp that would be left out.
    """
    K = len(alike_KK)
    fewer, large = FEWER * max(0, MANY_BALLOTS - K), accused > QUARTER * K
    if pairs.one_layer:
        share, apart = BY_LAYER
        cancelled = large and undo(alike_KK, camp, others, min(1.0, share + fewer), apart)
        return clear_members(alike_KK, camp, others, each_by_its_own=True) if cancelled else None
    disagreed, everybody_K = disagree(alike_KK, camp, others, accused), torch.ones(K, dtype=torch.bool)
    if disagreed and pairs.sudden:
        return everybody_K
    if pairs.beside_forgers(accused, K) and undo(alike_KK, camp, others, *BESIDE_FORGERS):
        return everybody_K
    share, apart = CANCELLED
    cancelled = large and undo(alike_KK, camp, others, share + fewer, apart)
    return clear_members(alike_KK, camp, others) if disagreed or cancelled else None


def busy(number_n: Tensor) -> Tensor:
    """(n,) whether a ballot has at least a quarter of a busy one's innovations; `number_n`: how many each has.

    Idle ballots neither agree nor disagree with anybody, so that among them two camps explain little: attackers could
    hide behind them.
    """
    if len(number_n) < FEWEST_BALLOTS:
        return torch.ones(len(number_n), dtype=torch.bool)
    busy_n = number_n >= IDLE * number_n.sort().values[3 * len(number_n) // 4]
    return busy_n if int(busy_n.sum()) >= FEWEST_BALLOTS else torch.ones_like(busy_n)


def aims(alike_nn: Tensor) -> Tensor:
    """(n,) whether a ballot agrees or disagrees with most others about as much as usual.

    Ballots at random do neither, and hide others as idle ones do. Attackers at random could agree with a few friends,
    but not with most ballots.
    """
    others_nn = alike_nn.clone().fill_diagonal_(0)
    working_n = (others_nn != 0).any(1)
    if not bool(working_n.any()):
        return working_n
    squares_nw = others_nn[:, working_n].square().sort(1).values[:, 1:]  # without the ballot itself, which has 0
    usual_n = squares_nw[:, : math.ceil(USUAL * squares_nw.shape[1])].mean(1)
    return usual_n >= AIM * usual_n[working_n].median()


def undisputed_for_long(memory: State, clients_n: Tensor, pairs: Pairs, inside: Tensor) -> bool:
    """Whether a round's clients have met often, and no two camps of the ballots `inside` oppose each other."""
    if len(clients_n) < FEWEST_BALLOTS or not met_in(memory, clients_n, LONG):
        return False
    alike_KK = pairs.alike_nn[inside][:, inside]
    sides = two_camps(alike_KK)
    accused = pairs.accused(inside[sides[0]], inside[sides[1]])
    return min(map(len, sides)) < FEWEST_MEMBERS or not disagree(alike_KK, *sides, accused)


def two_camps(alike_KK: Tensor) -> tuple[Tensor, Tensor]:
    """The ballots in two camps, so that pairs within a camp agree, and others do not."""
    order_K = disputed_direction(alike_KK).argsort()
    shares = explained(alike_KK[order_K][:, order_K])[FEWEST_MEMBERS - 1 : len(order_K) - FEWEST_MEMBERS]
    first = order_K[: int(shares.argmax()) + FEWEST_MEMBERS]
    return loyal_camps(alike_KK, torch.zeros(len(order_K), dtype=torch.bool).index_fill(0, first, True))


def disputed_direction(alike_KK: Tensor) -> Tensor:
    """(K,) positions of the ballots along their largest difference; ballots have nothing in common with themselves."""
    pairs_KK = alike_KK.clone().fill_diagonal_(mean_within(alike_KK))
    mean_K = pairs_KK.mean(0)

    # J A J u = lambda u, J = I - 1/K
    centred_KK = pairs_KK.sub_(mean_K).sub_(mean_K[:, None]).add_(mean_K.mean())
    vectors_KK: Tensor = torch.linalg.eigh(centred_KK)[1]
    return vectors_KK[:, -1]


def explained(alike_KK: Tensor) -> Tensor:
    """(K - 1,) R^2 of two camps, the first n ballots and the others, for n = 1 .. K - 1."""
    K = len(alike_KK)
    pairs_KK = alike_KK.clone().fill_diagonal_(0)
    count, total, squares = K * (K - 1), pairs_KK.sum(), pairs_KK.square().sum()
    n_n = torch.arange(1, K, dtype=torch.float64)

    # sums over pairs within the first n, and over pairs of a ballot of the first n with one of the others
    inside_n = running_sum(running_sum(pairs_KK).T).diagonal()[:-1]
    between_n = 2 * (running_sum(pairs_KK.sum(0))[:-1] - inside_n)
    of_between_n = 2 * n_n * (K - n_n)
    within_n, of_within_n = total - between_n, count - of_between_n

    # variance between both kinds of pairs / variance of all pairs
    gained_n = within_n.square() / of_within_n + between_n.square() / of_between_n - total.square() / count
    return gained_n / (squares - total.square() / count).clamp_min(1e-12)


def loyal_camps(alike_KK: Tensor, in_first_K: Tensor) -> tuple[Tensor, Tensor]:
    """The members of both camps, after each ballot has joined the camp with which it agrees more.

    A ballot between the camps cannot keep them from being told apart.
    """
    for _ in range(len(in_first_K)):
        with_one_K, with_other_K = (mean_agreement(alike_KK, c_K.double()) for c_K in (in_first_K, ~in_first_K))
        if torch.equal(with_one_K > with_other_K, in_first_K):
            break
        in_first_K = with_one_K > with_other_K
    return in_first_K.nonzero()[:, 0], (~in_first_K).nonzero()[:, 0]


def disagree(alike_KK: Tensor, camp: Tensor, others: Tensor, accused: int) -> bool:
    """Whether two camps pull against each other, and explain how ballots agree. A small camp has to pull clearly."""
    between = float(alike_KK[camp][:, others].mean())
    within = min(mean_within(alike_KK[side][:, side]) for side in (camp, others))  # attackers can make theirs large
    few = SMALL * len(alike_KK)
    clearly = DISPUTED if accused <= few else SLIGHTLY if min(len(camp), len(others)) <= few else 0.0
    needed = clearly * max(0.0, within)
    return explain(alike_KK, camp, others) >= 1 and between < -needed


def clear_members(alike_KK: Tensor, camp: Tensor, others: Tensor, each_by_its_own: bool = False) -> Tensor:
    """(K,) whether a ballot clearly belongs to its camp: clients without the disputed classes belong to neither.

    `each_by_its_own`: compared with the other members of its camp alone. In one layer attackers can agree with each
    other far more than honest clients do, who would seem to be unclear.
    """
    in_camp_K = torch.zeros(len(alike_KK), dtype=torch.float64).index_fill(0, camp, 1)
    with_camp_K, with_others_K = mean_agreement(alike_KK, in_camp_K), mean_agreement(alike_KK, 1 - in_camp_K)
    margin_K = (with_camp_K - with_others_K) * (2 * in_camp_K - 1)
    if not each_by_its_own:
        return margin_K >= CLEAR * margin_K.mean()
    mean_K = torch.empty_like(margin_K).index_fill(0, camp, float(margin_K[camp].mean()))
    return margin_K >= CLEAR * mean_K.index_fill(0, others, float(margin_K[others].mean()))


def mean_agreement(alike_KK: Tensor, in_camp_K: Tensor) -> Tensor:
    """(K,) the mean agreement of each ballot with the other members of a camp."""
    others_K = (in_camp_K.sum() - in_camp_K).clamp_min(1)
    return (alike_KK @ in_camp_K - alike_KK.diagonal() * in_camp_K) / others_K


def undo(alike_KK: Tensor, camp: Tensor, others: Tensor, share: float, apart: float) -> bool:
    """Whether two camps undo each other's work: nearly every ballot pulls against the other camp, and all together."""
    across = alike_KK[camp][:, others]
    against = min(float((across.mean(axis) < 0).double().mean()) for axis in (0, 1))
    within = [mean_within(alike_KK[side][:, side]) for side in (camp, others)]
    if min(within) <= 0 or against < NEARLY_ALL or explain(alike_KK, camp, others) < share:
        return False

    # rho = between / sqrt(within * within')
    return float(across.mean()) / math.sqrt(within[0] * within[1]) < -apart


def explain(alike_KK: Tensor, camp: Tensor, others: Tensor) -> float:
    """The share of the variance that two camps explain, relative to that of opposing camps."""
    order_K = torch.cat([camp, others])
    share = float(explained(alike_KK[order_K][:, order_K])[len(camp) - 1])
    return share / (EXPLAINED[0] + EXPLAINED[1] / len(order_K))


def mean_within(alike_nn: Tensor) -> float:
    """The mean over all pairs."""
    n = len(alike_nn)
    return float(alike_nn.sum() - alike_nn.trace()) / (n * (n - 1))
