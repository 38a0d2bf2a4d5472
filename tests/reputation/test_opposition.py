"""When two groups of clients are camps that oppose each other."""

from __future__ import annotations

import pytest
import torch

from fedvote.randomness import Key
from fedvote.reputation.opposition import Pairs, opposed_camp

N, MINORITY = 31, 12


def pairs(between: float, within: float, noise: float) -> Pairs:
    """Two groups, the first of them the smaller; each pair's agreement is its mean and noise."""
    second_N = torch.arange(N) >= MINORITY
    alike_NN = torch.where(second_N == second_N[:, None], within, between).double()
    drawn_NN = noise * torch.randn(N, N, generator=Key(3).torch("pairs"), dtype=torch.float64).triu(1)
    nobody = torch.empty(0, N, dtype=torch.float64)
    return Pairs(alike_NN + drawn_NN + drawn_NN.T, torch.ones(N), nobody, torch.empty(0), N / 2)


def test_camps_that_explain_most_of_the_agreement_oppose_each_other() -> None:
    found = opposed_camp(pairs(-0.005, 0.05, 0.015), torch.arange(N))
    assert found is not None and found.tolist() == list(range(MINORITY, N))


@pytest.mark.parametrize(("between", "within", "noise"), [(-0.005, 0.014, 0.012), (0.005, 0.05, 0.01)])
def test_groups_that_explain_less_or_agree_a_little_do_not(between: float, within: float, noise: float) -> None:
    """The first: honest clients with all classes beside others with two classes each, on digits."""
    assert opposed_camp(pairs(between, within, noise), torch.arange(N)) is None
