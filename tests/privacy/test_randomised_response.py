"""Randomised response: votes of the stated probability, an unbiased tally, bounded moves, and its account."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("dp_accounting")

from fedvote import ConfigError, FedVote, simulate
from fedvote.privacy import RandomisedResponse
from fedvote.privacy.account import ORDERS, _divergences, divergences, epsilon, log_poisson_binomial
from fedvote.privacy.spent import spent
from fedvote.quantize import round_binary
from fedvote.randomness import Key
from fedvote.secure import SecureTally
from tests.toy import dataset, module

ENDS = (0.25, 0.75)


def test_a_flipped_vote_is_a_vote_of_the_blurred_weight() -> None:
    """f + (1 - 2 f) p, by counting 200,000 votes of each weight."""
    privacy, w = RandomisedResponse(flip=0.2, move=1), torch.tensor([-1.0, -0.5, 0.0, 0.8])
    blurred = privacy.blur(w[None], torch.zeros(4))
    assert blurred.tolist()[0] == pytest.approx([-0.6, -0.3, 0.0, 0.48])
    u = torch.rand((200_000, 4), generator=Key(0).torch("u"))
    flips = torch.rand((200_000, 4), generator=Key(0).torch("flips")) < 0.2
    votes = round_binary(w, u).float()
    flipped = torch.where(flips, -votes, votes).mean(0)
    assert flipped.tolist() == pytest.approx(blurred[0].tolist(), abs=0.01)


def test_the_corrected_mean_is_unbiased() -> None:
    privacy, w = RandomisedResponse(flip=0.3, move=1), torch.tensor([[-0.9, 0.1, 0.7]])
    assert torch.allclose(privacy.correct(privacy.blur(w, torch.zeros(3))), w)


def test_no_client_moves_a_probability_by_more_than_the_bound() -> None:
    privacy, start = RandomisedResponse(flip=0.25, move=0.05), torch.tensor([0.0, 0.5, -0.9])
    moved = privacy.correct(privacy.blur(torch.tensor([[1.0, -1.0, -0.9]]), start))
    assert ((moved - start) / 2).tolist()[0] == pytest.approx([0.05, -0.05, 0.0], abs=1e-6)
    assert privacy.ends == pytest.approx((0.25, 0.30))
    assert RandomisedResponse(flip=0.25, move=1).ends == ENDS


def test_one_ballot_of_one_vote_has_the_epsilon_of_warner() -> None:
    """ln((1 - f) / f), with delta 0: a tally of one."""
    assert math.log(3) <= epsilon({1: 1}, ENDS, 1e-12) < math.log(3) + 0.02


def test_the_tally_of_coins_is_poisson_binomial() -> None:
    """Two coins of 1/4 and one of 3/4."""
    assert np.exp(log_poisson_binomial(2, 1, ENDS)).tolist() == pytest.approx([9 / 64, 33 / 64, 19 / 64, 3 / 64])


def test_the_divergence_of_one_tally_is_the_sum_over_its_values() -> None:
    """Of order 2, with plain numbers, for the worst of the three databases: sum of P^2 / Q."""

    def divergence(upper: int) -> float:
        others = np.exp(log_poisson_binomial(9 - upper, upper, ENDS))
        low, high = (np.convolve(others, [1 - end, end]) for end in ENDS)
        return max(math.log((p**2 / q).sum()) for p, q in ((low, high), (high, low)))

    assert divergences(10, ENDS)[list(ORDERS).index(2.0)] == pytest.approx(max(map(divergence, (0, 4, 9))))


@pytest.mark.parametrize("ends", [(0.25, 0.45), (0.4, 0.42), (0.05, 0.59)])
def test_no_other_mixture_of_coins_and_no_other_place_of_their_range_gives_away_more(ends: tuple[float, float]) -> None:
    """A divergence is quasi-convex in each coin: only coins at the ends can be worst, in whichever mixture."""
    width, top = ends[1] - ends[0], 1 - ends[0]
    places = [(low, low + width) for low in np.linspace(ends[0], top - width, 5)]
    worst = np.max([_divergences(11 - upper, upper, place) for upper in range(12) for place in places], axis=0)
    assert worst == pytest.approx(divergences(12, ends), rel=1e-6)


def test_epsilon_is_an_upper_bound_of_a_finer_account_and_close_to_it() -> None:
    """By privacy loss distributions of the same library, rounded up to small steps."""
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

    others = np.exp(log_poisson_binomial(99, 0, (0.25, 0.3)))
    low, high = (
        {i: math.log(p) for i, p in enumerate(np.convolve(others, [1 - end, end])) if p > 1e-30} for end in (0.25, 0.3)
    )
    loss = from_two_probability_mass_functions(low, high, value_discretization_interval=1e-5)
    finer = loss.self_compose(1000).get_epsilon_for_delta(1e-5)
    assert 0.95 * finer < epsilon({100: 1000}, (0.25, 0.3), 1e-5) < 1.2 * finer


def test_more_voters_give_away_less_and_more_rounds_more() -> None:
    few, many = (epsilon({voters: 1000}, (0.25, 0.27), 1e-5) for voters in (30, 1000))
    assert many < few < epsilon({30: 2000}, (0.25, 0.27), 1e-5)


def simulated(privacy: RandomisedResponse | None, **options: Any) -> Any:
    method = FedVote(privacy=privacy) if privacy else FedVote()
    chosen: dict[str, Any] = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cpu", "start": "seed"}
    return simulate(module(), dataset(), method, **chosen | {"secure": SecureTally()} | options)


def test_epsilon_of_each_round_and_in_all_is_on_record() -> None:
    measured = [snapshot.record["measured"] for snapshot in simulated(RandomisedResponse(delta=1e-4))]
    rounds, in_all = ([each[name] for each in measured] for name in ("epsilon", "epsilon_in_all"))
    assert rounds[0] == rounds[1] == rounds[2] == in_all[0] < in_all[1] < in_all[2] < 3 * rounds[0]
    assert in_all[2] == pytest.approx(epsilon({5: 3 * 72}, RandomisedResponse().ends, 1e-4))
    assert all(each["delta"] == 1e-4 for each in measured)


def test_colluding_clients_hide_nobody() -> None:
    alone, helped = (RandomisedResponse(colluding=c).account({5: 1}, 5, 10)["epsilon"] for c in (4, 0))
    assert alone == pytest.approx(epsilon({1: 10}, RandomisedResponse().ends, 1e-5)) and alone > helped


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: RandomisedResponse(flip=0.5), "flip is 0.5"),
        (lambda: RandomisedResponse(move=0), "move is 0"),
        (lambda: RandomisedResponse(delta=0), "delta is 0"),
        (lambda: RandomisedResponse(colluding=-1), "colluding is -1"),
        (lambda: FedVote(privacy=RandomisedResponse(), votes="ternary"), "for binary votes"),
        (lambda: FedVote(privacy=RandomisedResponse(), counts="changes"), "counts = votes"),
        (lambda: FedVote(privacy=RandomisedResponse(), reputation="camps"), "reputation = uniform"),  # type: ignore[arg-type]
        (lambda: simulated(RandomisedResponse(), secure="none"), "set secure.name = tally"),
    ],
)
def test_what_the_account_does_not_hold_for_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make()


@pytest.mark.parametrize(("epsilon", "weak"), [(2.04, False), (215.4, True)])
def test_a_run_ends_with_what_all_its_tallies_gave_away(epsilon: float, weak: bool) -> None:
    accounted = {"measured": {"epsilon": 1.0, "epsilon_in_all": epsilon, "delta": 1e-05}}
    said = spent([{"measured": {"epsilon_in_all": 1.0, "delta": 1e-05}}, accounted, {}])
    assert said.startswith(f"privacy of each client, over all rounds: epsilon {epsilon:.1f}, delta 1e-05")
    assert ("promises next to nothing" in said) == weak
    assert spent([{}, {"measured": {"weights_flipped": 0.1}}]) == ""


def test_a_cohort_that_is_drawn_counts_as_clients_that_vote_in_every_round() -> None:
    options: dict[str, Any] = {
        "rounds": 2,
        "steps": 1,
        "batch": 8,
        "device": "cpu",
        "secure": SecureTally(count_only=True),
    }
    of_all, of_drawn = (
        [*simulate(module(), dataset(), FedVote(privacy=RandomisedResponse()), clients=clients, cohort=4, **options)][
            -1
        ]
        for clients in (4, 5)
    )
    assert of_all.record["measured"]["epsilon_in_all"] == of_drawn.record["measured"]["epsilon_in_all"]
