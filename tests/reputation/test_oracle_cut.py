"""`oracle-cut`, as the paper's authors ran their rule: it knows whose votes make the plurality."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote import ConfigError, FedVote
from fedvote.engines.simulate import simulate
from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Cut, OracleCut, Reputation, Verdict
from tests import toy

K, D, HOSTILE, SEED = 7, 4000, 3, 0


def hostile(seed: int = SEED) -> list[int]:
    """The clients that attack in a run with this seed."""
    made = simulate(toy.module(), toy.dataset(), FedVote(), clients=K, rounds=1, batch=8, hostile=HOSTILE, seed=seed)
    return list(made.federation.hostile)


def ballots(often: float = 0.8) -> Ballots:
    """Honest clients agree in so many votes; hostile ones send minus what the others agree on."""
    lots = torch.Generator().manual_seed(0)
    truth_D = torch.randint(0, 2, (D,), generator=lots) * 2 - 1
    votes_KD = torch.where(torch.rand((K, D), generator=lots) < often, truth_D, -truth_D)
    votes_KD[hostile()] = -truth_D
    return Ballots(votes_KD.to(torch.int8), torch.arange(K), torch.zeros(D), BINARY)


def judged(rule: Reputation, often: float = 0.8) -> Verdict:
    return rule.judge(rule.init(K), ballots(often), Key(SEED, 1))


def plurality_of(rows: list[int]) -> Tensor:
    return ballots().votes_KD[rows].long().sum(0).sign()


def test_clients_are_judged_by_the_plurality_of_the_honest_from_the_first_round_on() -> None:
    verdict, honest = judged(OracleCut(attackers=HOSTILE)), sorted(set(range(K)) - set(hostile()))
    assert verdict.soft_K.nonzero().flatten().tolist() == honest
    winner_D = plurality_of(honest)
    tied = float((winner_D == 0).float().mean())  # ties are broken at random
    for ballot, reputation in zip(ballots().votes_KD, verdict.memory["reputation"], strict=True):
        agreed = float((ballot == winner_D).float().mean())
        assert (1 + agreed) / 2 <= reputation <= (1 + agreed + tied) / 2


def test_a_server_that_is_not_told_is_led_astray_by_fewer_than_half() -> None:
    """Three who agree with each other make the plurality of seven, and so are the only credible ones."""
    assert judged(Cut(), often=0.7).soft_K.nonzero().flatten().tolist() == hostile()
    assert judged(OracleCut(attackers=HOSTILE), often=0.7).soft_K[hostile()].tolist() == [0, 0, 0]


def test_a_number_of_attackers_that_there_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"attackers is 7, expected 0 to 6, as in federation\.hostile"):
        OracleCut(attackers=K).init(K)
