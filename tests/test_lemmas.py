"""The lemmas of the paper that a computer can check, by their numbers."""

from __future__ import annotations

from math import exp, pi, sqrt

import numpy as np
import pytest
import torch
from torch import Tensor

from fedvote.methods.fedpaq import qsgd
from fedvote.quantize import BINARY, Erf, Normalisation, Tanh, plurality, round_binary, round_stack, soft_vote, tally
from fedvote.randomness import Key

PHI = [kind(a) for kind in (Tanh, Erf) for a in (0.5, 1.5, 4.0)]


def uniform(shape: tuple[int, ...], low: float, high: float, seed: int) -> Tensor:
    return low + (high - low) * torch.rand(shape, generator=Key(seed).torch("uniform"), dtype=torch.float64)


def wrong_votes_pmf(error_probability_M: list[float]) -> np.ndarray:
    """P(Y = 0), ..., P(Y = M): the Poisson binomial distribution of the number of wrong votes."""
    pmf = np.ones(1)
    for e in error_probability_M:
        pmf = np.convolve(pmf, [1 - e, e])
    return pmf


def assert_within_5_sigma(samples: Tensor, expected: float | Tensor) -> None:
    """The mean over the first axis, by the samples' own deviation."""
    sigma = samples.std(0) / sqrt(len(samples))
    assert ((samples.mean(0) - expected).abs() <= 5 * sigma + 1e-9).all()


def error_of_rounding(a_D: Tensor, draws: int, seed: int) -> Tensor:
    """(draws,) |Q_sr(a) - a|^2."""
    votes = round_binary(a_D, torch.rand(draws, len(a_D), generator=Key(seed).torch("rounding")))
    return (votes - a_D).square().sum(1)


def next_weights(normalised_MD: Tensor, weights_M: Tensor, seed: int, draws: int = 4000) -> Tensor:
    """(draws, D) soft votes. Weights are rounded apart, so that copies of a weight are draws of it."""
    M, D = normalised_MD.shape
    votes = round_stack(normalised_MD.repeat(1, draws), BINARY, [Key(seed, 0, m).torch("rounding") for m in range(M)])
    return soft_vote(tally(votes, weights_M, BINARY), BINARY).double().view(draws, D)


def quantised(x_D: Tensor, generator: torch.Generator, draws: int = 1) -> Tensor:
    """(draws, D) Q(x) of QSGD with s = 1, as FedPAQ's clients send it and its server reads it."""
    norm: Tensor = x_D.norm()
    return norm * qsgd(x_D, norm, 1, torch.rand(draws, len(x_D), generator=generator, dtype=torch.float64))


def slope_of_logs(x: list[int], y: list[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


@pytest.mark.parametrize("M", [1, 2, 3, 5, 8, 15, 30])
@pytest.mark.parametrize("hardest", [0.2, 0.45, 0.8])  # one client may be wrong more often than right
def test_lemma_1_one_shot_error_is_below_its_exponential_bound(M: int, hardest: float) -> None:
    errors_M = torch.linspace(0.02, hardest, M, dtype=torch.float64) if M > 1 else torch.tensor([min(hardest, 0.4)])
    s = float(errors_M.mean())
    assert s < 0.5
    weights = 60_000  # independent weights with the same error probabilities
    truth_D = torch.where(torch.rand(weights, generator=Key(1).torch("truth")) < 0.5, 1, -1)
    votes_MD = round_stack(
        truth_D * (1 - 2 * errors_M[:, None]), BINARY, [Key(1, M, m).torch("rounding") for m in range(M)]
    )
    tally_VD = tally(votes_MD, torch.ones(M), BINARY)
    wrong_D = torch.where(truth_D == 1, tally_VD[0], tally_VD[1])

    pmf = wrong_votes_pmf(errors_M.tolist())
    exact = pmf[[2 * y >= M for y in range(M + 1)]].sum()  # the proof counts a tie as an error
    bound = (2 * s * exp(1 - 2 * s)) ** (M / 2)
    if exact > 1e-3:  # else too few errors to count
        assert_within_5_sigma((2 * wrong_D >= M).double(), exact)
    assert exact <= bound + 1e-12

    voted_D = plurality(tally_VD, BINARY, Key(1, M).torch("tie"))
    observed_D = (voted_D != truth_D).double()
    assert observed_D.mean() <= bound + 5 * sqrt(bound / weights)
    tie = pmf[M // 2] if M % 2 == 0 else 0.0
    if exact > 1e-3:
        assert_within_5_sigma(observed_D, exact - tie / 2)  # a coin decides a tie


@pytest.mark.parametrize("phi", PHI, ids=repr)
def test_lemma_2_fedvote_recovers_fedavg_of_normalised_weights_in_expectation(phi: Normalisation) -> None:
    latent_MD = torch.tensor([[-2.0, 0.1, 0.4], [-0.3, 0.0, 0.2], [0.1, -0.1, 0.9], [0.7, 0.5, -0.6]])
    assert_within_5_sigma(next_weights(phi(latent_MD), torch.ones(4), seed=2), phi(latent_MD.double()).mean(0))


def test_lemma_2_holds_for_weighted_votes_with_the_weighted_average() -> None:
    phi, weights_M = Tanh(1.5), torch.tensor([0.5, 0.3, 0.2])
    latent_MD = torch.tensor([[-1.0, 0.1, 0.4], [0.5, 0.0, 0.2], [0.1, -0.8, 0.9]])
    next_weight = next_weights(phi(latent_MD), weights_M, seed=3)
    assert_within_5_sigma(next_weight, weights_M.double() @ phi(latent_MD.double()))


@pytest.mark.parametrize(
    "a_D",
    [torch.zeros(5), torch.tensor([0.5, -0.25, 0.9]), torch.full((40,), -0.99), uniform((100,), -1, 1, seed=4)],
    ids=["zeros", "three", "certain", "uniform"],
)
def test_lemma_3_rounding_error_is_d_less_the_squared_norm(a_D: Tensor) -> None:
    a_D = a_D.double()
    assert_within_5_sigma(error_of_rounding(a_D, draws=20_000, seed=4), float(len(a_D) - a_D.square().sum()))


@pytest.mark.parametrize("d", [1, 3, 100])
def test_lemma_4_qsgd_error_is_the_product_of_norms_less_the_squared_norm(d: int) -> None:
    x = torch.randn(d, generator=Key(5).torch("x"), dtype=torch.float64)
    generator = Key(5).torch("qsgd")
    draws = quantised(x, generator, 20_000)
    expected = float(x.norm() * x.norm(1) - x.norm() ** 2)
    assert_within_5_sigma(draws @ x, float(x.norm() ** 2))  # as of an unbiased quantiser
    assert_within_5_sigma((draws - x).square().sum(1), expected)
    assert expected <= (sqrt(d) - 1) * float(x.norm() ** 2) + 1e-9


def test_lemma_4_its_bound_is_reached_where_all_entries_are_equal() -> None:
    x = torch.full((64,), -0.25, dtype=torch.float64)
    generator = Key(6).torch("qsgd")
    errors = (quantised(x, generator, 20_000) - x).square().sum(1)
    assert_within_5_sigma(errors, (sqrt(64) - 1) * float(x.norm() ** 2))


def test_lemma_4_and_remark_2_errors_grow_as_the_paper_says() -> None:
    dimensions = [2**n for n in range(8, 19)]
    relative, absolute, votes = [], [], []
    for d in dimensions:
        update = torch.randn(d, generator=Key(7, d).torch("update"), dtype=torch.float64)
        error = float((quantised(update, Key(7, d).torch("qsgd")) - update).square().sum())
        relative.append(error / float(update.square().sum()))
        absolute.append(error)
        p = torch.from_numpy(Key(7, d).numpy("beta").beta(0.5, 0.5, d))  # symmetric
        votes.append(float(error_of_rounding(2 * p - 1, draws=1, seed=d)))
    assert slope_of_logs(dimensions, relative) == pytest.approx(0.5, abs=0.05)  # O(d^1/2) |x|^2
    assert slope_of_logs(dimensions, absolute) == pytest.approx(1.5, abs=0.05)  # of Gaussian updates: O(d^3/2)
    assert slope_of_logs(dimensions, votes) == pytest.approx(1.0, abs=0.05)  # of votes: O(d)


@pytest.mark.parametrize("M", [1, 2, 5, 31])
def test_lemma_5_the_next_normalised_weight_is_the_mean_vote(M: int) -> None:
    votes_MD = round_stack(uniform((M, 200), -1, 1, seed=8), BINARY, [Key(8, 0, m).torch("rounding") for m in range(M)])
    next_weight = soft_vote(tally(votes_MD, torch.ones(M), BINARY), BINARY)
    torch.testing.assert_close(next_weight, votes_MD.float().mean(0), atol=1e-7, rtol=0)


@pytest.mark.parametrize("phi", PHI, ids=repr)
def test_lemma_5_the_latent_weight_of_the_mean_vote_is_normalised_to_it_again(phi: Normalisation) -> None:
    votes_MD = torch.tensor([[1, -1, 1], [1, -1, -1], [-1, 1, -1], [1, 1, -1]], dtype=torch.int8)
    latent_D = phi.inverse(soft_vote(tally(votes_MD, torch.ones(4), BINARY), BINARY))
    torch.testing.assert_close(phi(latent_D), torch.tensor([0.5, 0.0, -0.5]))


@pytest.mark.parametrize("phi", PHI, ids=repr)
def test_lemma_6_normalisation_is_lipschitz(phi: Normalisation) -> None:
    c2 = phi.a if isinstance(phi, Tanh) else 2 * phi.a / sqrt(pi)
    x1, x2 = uniform((2, 50_000), -3, 3, seed=9)
    gap = (phi(x1) - phi(x2)).abs()
    assert (gap <= c2 * (x1 - x2).abs() + 1e-12).all()
    at_zero = torch.tensor([-1e-4, 1e-4], dtype=torch.float64)
    assert float(phi(at_zero).diff() / at_zero.diff()) == pytest.approx(c2, rel=1e-5)  # no smaller constant would do
