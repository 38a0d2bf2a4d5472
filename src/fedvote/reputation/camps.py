"""Camps: leaves out ballots that look forged or copied, camps that pull against the majority, and small cliques.

The rule looks at innovations: where a ballot departs from the broadcast, given its client's random numbers. It leaves
out, with all their votes, in this order:

- copies (copies.py): ballots that go with another client's random numbers;
- forgers: ballots with far more work than the majority's. Work is the number of innovations, and the sum of their
  jumps, in the whole ballot, in each layer, and in blocks of large layers. Honest clients work about equally much. The
  more lines, the wider the gap has to be. The test repeats: attackers can be of many kinds;
- conspirators: ballots that agree with all others far more than the majority's do, on the same lines, and with each
  other most of all. Honest clients learn from different examples. Attackers who push the same weights agree more;
- opponents (opposition.py): the smaller of two camps that pull against each other, over rounds or in one, in whole
  ballots or in one layer (layer_pairs.py). If members of the larger camp have copied the votes of others in it, they
  are left out instead. Where whole ballots are compared, idle ones are set aside first, and then those that vote at
  random as well: they would hide the others;
- cliques (cliques.py): a few clients that agree with each other alone, as if their inputs had a trigger.

A client's reputation is a moving average of the rounds in which it stayed. Reputation decides which camp is the
majority, narrows the gap needed against clients that were left out before, and is the vote weight of those who stay.
All clients start equal, so the first round counts heads. Trusted clients are never left out, and each outweighs all
untrusted ones where a majority is sought: then the honest may be fewer than half. Where a round has a part of the
clients, the last work of the others stands beside theirs. docs/camps.md has every step, docs/byzantine.md what breaks
the rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar

import torch
from torch import Tensor

from fedvote.core import State
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from fedvote.reputation.ballot_lines import EQUAL, LINES, all_lines, common_counts, cosines, sum_of_work
from fedvote.reputation.client_pairs import Pairs, no_pairs, pairs_of, remembered
from fedvote.reputation.cliques import clique, kinship, no_kinship
from fedvote.reputation.copies import copies, robbed
from fedvote.reputation.gaps import FEWEST, Line, widest_gap
from fedvote.reputation.innovations import POWERS, Part, innovations
from fedvote.reputation.layer_pairs import no_layer_pairs, pairs_by_layer, remembered_by_layer
from fedvote.reputation.opposition import (
    FEWEST_BALLOTS,
    aims,
    busy,
    may_accuse,
    opposed_camp,
    still_opposed,
    undisputed_for_long,
)
from fedvote.reputation.reputation import Ballots, Reputation, Verdict

LEAST = 0.25  # heads that a client of reputation 0 counts for
SLACK = 1e-6  # exactly half of the heads is no majority, despite rounding errors of the sum
KNOWN = 0.05  # share of rounds as an opponent, a moving average, from which on a client is known as one
ALWAYS = 1 - 1e-6  # share of rounds as an opponent that no longer grows, by the rounding of float32
FORGED = "the ballot looks forged, copied or coordinated"
OPPOSED = "the votes pull against the majority"
CLIQUE = "the votes agree with those of a few others alone, as if they shared a backdoor"


@dataclass(frozen=True)
class Camps(Reputation):
    by_layer: ClassVar[bool] = True
    fewest: ClassVar[int] = FEWEST + 1
    beta: float = 0.8  # share of the old reputation that is kept
    gap: float = 3.0  # minimum gap of a single test, in standard deviations of a large majority camp
    clique: float = 0.1  # a clique is left out if it has at most this share of a round's clients; 0: no clique is
    opponents: bool = True  # leave out camps that pull against the majority; false if honest groups may contradict
    trusted: tuple[int, ...] = ()  # clients known to be honest: they always count, and their side is the majority

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ConfigError(f"beta is {self.beta}, expected a number between 0 and 1")
        if not 0 < self.gap < float("inf"):
            raise ConfigError(f"gap is {self.gap}, expected a number above 0")
        if not 0 <= self.clique < 0.5:
            raise ConfigError(f"clique is {self.clique}, expected a share of the clients, from 0 to less than 0.5")
        if min(self.trusted, default=0) < 0 or len(set(self.trusted)) < len(self.trusted):
            given = list(self.trusted)
            raise ConfigError(f"trusted is {given}, expected a list of different client numbers, such as [0, 1]")

    @property
    def fewest_for_labels(self) -> int:
        return FEWEST_BALLOTS if self.opponents else 0

    @property
    def trusted_clients(self) -> tuple[int, ...]:
        return self.trusted

    def doubts(self, hostile: int, classes: int) -> Sequence[str]:
        groups = (
            "the data have two classes: honest clients with mostly one of them pull against those with the other, and "
            "Camps may leave them out as opponents; set opponents = false, unless all have both classes about equally"
        )
        return (groups,) if self.opponents and classes == 2 else ()

    def init(self, clients: int) -> State:
        if max(self.trusted, default=0) >= clients:
            raise ConfigError(f"trusted is {list(self.trusted)}, expected numbers of clients, 0 to {clients - 1}")
        own = {"reputation": torch.ones(clients), "work": torch.zeros(clients, len(POWERS))}
        pairs = {**no_pairs(clients), **no_layer_pairs(clients), **no_kinship(clients)}
        return {**own, **pairs, "clique": torch.zeros(clients)}

    def judge(self, memory: State, ballots: Ballots, key: Key) -> Verdict:
        clients_K = ballots.clients_K
        nu_K = memory["reputation"][clients_K]
        heads_N = self.heads_of_all(memory["reputation"])
        found = innovations(ballots, key)
        copied_K = copies(found)
        found = [part.jumps_alone() for part in found]  # frees the roundings
        stay, half = self.plausible(found, copied_K, heads_N, clients_K.cpu(), memory["work"].double().cpu())
        trusted_K = torch.isin(clients_K.cpu(), torch.tensor(self.trusted, dtype=torch.long))
        stay = with_trusted(stay, trusted_K)
        rows = clients_K[stay.to(clients_K.device)]
        work_KP = sum_of_work(found).to(memory["work"])
        memory = memory | kinship(memory, rows, found, stay)
        alike_nn = cosines(common_counts(found)[stay][:, stay])
        memory = memory | remembered(memory, rows, alike_nn)
        memory = memory | remembered_by_layer(memory, rows, found, stay)
        found = [part.jumps_alone() for part in found]  # frees the cached counts of pairs
        pairs = pairs_of(memory, rows, alike_nn, heads_N, half, len(clients_K))
        number_n = work_KP[stay.to(work_KP.device), 0].cpu()
        inside = self.undisputed(memory, rows, found, stay, number_n, alike_nn, pairs)
        inside = with_trusted(inside, trusted_K[stay])
        del alike_nn, pairs
        opposed_n = torch.ones(len(stay), dtype=nu_K.dtype).index_fill(0, inside, 0).to(nu_K.device)
        alone = self.alone(memory, rows, inside, len(clients_K))
        inside = with_trusted(inside[~torch.isin(inside, alone)], trusted_K[stay])
        stays_K = torch.zeros_like(nu_K).index_fill(0, stay[inside].to(nu_K.device), 1)

        # nu_m <- beta nu_m + (1 - beta) 1(m stays)
        nu_K = nu_K + (1 - self.beta) * (stays_K - nu_K)

        # lambda_m = nu_m 1(m stays)
        weights_K = nu_K * stays_K
        stayed_K = stays_K > 0
        work_NP = memory["work"].index_copy(0, clients_K[stayed_K], work_KP[stayed_K])
        mean_n = self.beta * memory["opposed"][rows] + (1 - self.beta) * opposed_n
        new = {
            "reputation": memory["reputation"].index_copy(0, clients_K, nu_K),
            "work": work_NP,
            "opposed": memory["opposed"].index_copy(0, rows, mean_n),
            "clique": memory["clique"].index_fill(0, clients_K, 0).index_fill(0, rows[alone.to(rows.device)], 1),
        }
        return Verdict(weights_K, weights_K, memory | new)

    def reasons(self, before: State, after: State, left_out: Sequence[int]) -> dict[int, str]:
        opposed_N = (after["opposed"] > before["opposed"]) | (after["opposed"] > ALWAYS)
        kinds = ((after["clique"] > 0, CLIQUE), (opposed_N, OPPOSED))
        return {client: next((why for found_N, why in kinds if found_N[client]), FORGED) for client in left_out}

    def heads_of_all(self, nu_N: Tensor) -> Tensor:
        """(N,) how much each client counts where a majority is sought. A trusted one outweighs all that are not."""
        heads_N = (LEAST + (1 - LEAST) * nu_N).double().cpu()
        return heads_N.index_fill(0, torch.tensor(self.trusted, dtype=torch.long), float(len(heads_N)))

    def plausible(
        self, found: Sequence[Part], copied_K: Tensor, heads_N: Tensor, clients_K: Tensor, work_NP: Tensor
    ) -> tuple[Tensor, float]:
        """The ballots that are neither copies nor forged, and half of the heads.

        They have more than half, except against remembered work: there the heads of clients outside of the round count.
        """
        heads_K = heads_N[clients_K]
        half = float(heads_K.sum()) * (1 + SLACK) / 2
        stay = torch.arange(len(heads_K))
        original = stay[~copied_K]
        if float(heads_K[original].sum()) > half:
            stay = original
        need = corrected(self.gap, LINES * (len(found) + (len(found) > 1)))
        usual = self.usual_work(sum_of_work(found), stay, clients_K, heads_N, work_NP, need)
        if len(usual) < len(stay):
            stay, half = usual, float(heads_K[usual].sum()) * (1 + SLACK) / 2
        while len(stay) and (camp := self.camp(all_lines(found, stay), heads_K[stay], half, need)) is not None:
            stay = stay[camp]
        return stay, half

    def undisputed(
        self,
        memory: State,
        rows: Tensor,
        found: Sequence[Part],
        stay: Tensor,
        number_n: Tensor,
        alike_nn: Tensor,
        pairs: Pairs,
    ) -> Tensor:
        """The ballots that do not pull against the majority: in whole ballots, over rounds and now, nor in a layer.

        Whole ballots are compared without idle ones, and then without those that have no aim, either: they stay.
        `number_n`: the innovations of each ballot.
        """
        known_n = memory["opposed"][rows].cpu() > KNOWN
        busy_n = busy(number_n)
        sudden = undisputed_for_long(memory, rows, pairs, busy_n.nonzero()[:, 0])
        now = replace(pairs, alike_nn=alike_nn, sudden=sudden)
        inside = torch.arange(len(stay))
        for compared_n in (busy_n, busy_n & aims(alike_nn)):
            aside = inside[~compared_n[inside]]
            inside = self.unopposed(found, stay, known_n, inside[compared_n[inside]], [pairs], [now])
            inside = torch.cat([inside, aside]).sort().values
        return self.unopposed(found, stay, known_n, inside, list(pairs_by_layer(memory, rows, pairs)))

    def unopposed(
        self,
        found: Sequence[Part],
        stay: Tensor,
        known_n: Tensor,
        inside: Tensor,
        over_rounds: Sequence[Pairs],
        now: Sequence[Pairs] = (),
    ) -> Tensor:
        """Which of the ballots `inside` are the majority, if a minority pulls against it, over rounds or now.

        `known_n`: opponents of earlier rounds, who are looked for first.
        """
        if not self.opponents:
            return inside
        for pairs in over_rounds:
            still_n = still_opposed(pairs, inside, known_n)
            if pairs.outnumber(inside[~still_n], inside[still_n]):
                inside = inside[~still_n]
        for pairs in (*over_rounds, *now):
            while (camp := opposed_camp(pairs, inside)) is not None:
                if (side := self.honest_side(found, stay, inside, camp, pairs)) is None:
                    break
                inside = side
        return inside

    def alone(self, memory: State, rows: Tensor, inside: Tensor, ballots: int) -> Tensor:
        """Which of the ballots inside are a clique. All ballots of the round limit its size, also those left out."""
        most = int(self.clique * ballots + 1e-9)  # 0.29 * 100 is less than 29
        found = clique(memory, rows[inside.to(rows.device)], most)
        return inside[:0] if found is None else inside[found]

    def camp(self, lines: Iterator[Line], heads_n: Tensor, half: float, need: float) -> Tensor | None:
        """Indices of the ballots on the majority's side of the widest gap; None if no gap is wide enough."""
        left = list(lines)
        while True:
            width, line, camp = widest_gap(left, heads_n, half, need)
            if width <= 1 or line is None:
                return None
            if line.conspired(camp):
                return camp
            lower = replace(line, places_K=line.places_K.clamp_max(float(line.places_K[camp].max())))  # gaps below it
            left = [lower if each is line else each for each in left]

    def honest_side(
        self, found: Sequence[Part], stay: Tensor, inside: Tensor, camp: Tensor, pairs: Pairs
    ) -> Tensor | None:
        """The camp; or, if its members have robbed some of their own, all others and the robbed ones.

        None if nobody can tell: the camp agrees far more than the others do, who hardly pull against it.
        """
        victims, others = robbed(found, stay[camp]), inside[~torch.isin(inside, camp)]
        with_victims = torch.cat([others, camp[victims]]).sort().values
        if bool(victims.any()) and pairs.outnumber(with_victims, camp[~victims]):
            return with_victims
        return camp if may_accuse(pairs, camp, others) else None

    def usual_work(
        self, work_KP: Tensor, stay: Tensor, clients_K: Tensor, heads_N: Tensor, work_NP: Tensor, need: float
    ) -> Tensor:
        """The ballots with no more work than usual, where most clients are not in this round, but are remembered."""
        absent = (work_NP > 0).all(1).index_fill(0, clients_K, False).nonzero()[:, 0]
        trusted = torch.tensor(self.trusted, dtype=torch.long)
        here, away = (int(torch.isin(clients, trusted).sum()) for clients in (clients_K, absent))
        if len(absent) < len(clients_K) and (here >= FEWEST or not away):  # so few trusted clients are no camp alone
            return stay
        heads = torch.cat([heads_N[clients_K[stay]], heads_N[absent]])
        half = float(heads.sum()) * (1 + SLACK) / 2
        for power in range(len(POWERS)):
            places = torch.cat([work_KP[stay, power], work_NP[absent, power]]).clamp_min(1e-12).log()
            width, _, camp = widest_gap([Line(places, EQUAL[power])], heads, half, need)
            if width > 1:
                kept = camp[camp < len(stay)]
                heads = torch.cat([heads[kept], heads[len(stay) :]])
                stay = stay[kept]
        return stay


def with_trusted(stay: Tensor, trusted_n: Tensor) -> Tensor:
    """The indices of the ballots that stay, and of those of trusted clients."""
    return torch.cat([stay, trusted_n.index_fill(0, stay, False).nonzero()[:, 0]])


def corrected(gap: float, tests: int) -> float:
    """The gap that so many tests exceed by chance as rarely as a single test exceeds `gap`, if positions are normal."""
    one, usual = NormalDist(), 3.0
    chance = 1 - one.cdf(usual)

    # z(1 - alpha / tests) / z(1 - alpha), with alpha the chance of three standard deviations
    return gap * one.inv_cdf(1 - chance / tests) / usual
