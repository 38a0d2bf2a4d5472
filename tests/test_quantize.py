"""The maths of a vote: normalisation, rounding, tally, plurality, levels."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from fedvote.quantize import (
    BINARY,
    NORMALISATIONS,
    ROUNDING,
    TERNARY,
    Alphabet,
    Erf,
    Normalisation,
    Tanh,
    clip,
    from_level,
    likeliest,
    plurality,
    random_vote,
    round_binary,
    round_stack,
    round_ternary,
    share_of_votes,
    soft_vote,
    tally,
    threshold_binary,
    threshold_ternary,
    to_level,
)
from fedvote.randomness import Key

STEEPNESS = (0.5, 1.0, 1.5, 2.5, 10.0)


@dataclass(frozen=True)
class Softsign(Normalisation):
    """What a user would write: phi(h) = a h / (1 + |a h|)."""

    def __call__(self, h: Tensor) -> Tensor:
        return self.a * h / (1 + (self.a * h).abs())

    def inverse(self, w: Tensor) -> Tensor:
        return w / (1 - w.abs()) / self.a


EVERY_PHI: list[Normalisation] = [kind(a) for kind in (Tanh, Erf, Softsign) for a in STEEPNESS]


def assert_within_5_sigma(mean: Tensor, expected: Tensor, variance: Tensor, draws: int) -> None:
    """Of `draws` draws with this variance each; a right answer fails less than once in a million weights."""
    sigma = (variance / draws).sqrt()
    worst = ((mean - expected).abs() - 5 * sigma).max()
    assert worst <= 1e-6, f"off by {worst:.2e} more than 5 sigma"


# Normalisation


def test_the_registered_normalisations_are_those_of_the_paper() -> None:
    h = torch.tensor([-0.4, 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(
        NORMALISATIONS["tanh"](1.5)(h),
        torch.tensor([-0.5370495669980353, 0.0, 0.9051482536448664], dtype=torch.float64),
    )
    torch.testing.assert_close(
        NORMALISATIONS["erf"](1.0)(h),
        torch.tensor([-0.42839235504666845, 0.0, 0.8427007929497149], dtype=torch.float64),
    )


def test_the_default_steepness_is_the_papers() -> None:
    assert Tanh().a == Erf().a == 1.5


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_p_survives_the_inverse_and_back(phi: Normalisation) -> None:
    p = torch.linspace(0.001, 0.999, 999)
    h = phi.inverse(2 * p - 1)
    assert h.isfinite().all()
    torch.testing.assert_close((phi(h) + 1) / 2, p, atol=2e-7, rtol=2e-6)


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_normalisation_is_strictly_increasing_onto_the_open_interval(phi: Normalisation) -> None:
    reach = float(phi.inverse(torch.tensor(0.998)))
    w = phi(torch.linspace(-reach, reach, 1001, dtype=torch.float64))
    assert (w.diff() > 0).all()
    assert (w.abs() < 1).all()
    torch.testing.assert_close(w, -w.flip(0))  # odd, so zero stays zero and neither vote is favoured


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_normalisation_is_differentiable(phi: Normalisation) -> None:
    reach = float(phi.inverse(torch.tensor(0.9)))
    h = torch.linspace(-reach, reach, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(phi, (h,))


def test_a_normalisation_saturates_to_votes_not_to_nan() -> None:
    for phi in (Tanh(), Erf()):
        assert phi(torch.tensor([-1e30, 1e30])).tolist() == [-1.0, 1.0]


def test_clip_keeps_p_between_its_bounds() -> None:
    soft = 2 * torch.tensor([0.0, 0.001, 0.01, 0.5, 0.995, 1.0]) - 1
    p = (clip(soft, 0.01) + 1) / 2
    torch.testing.assert_close(p, torch.tensor([0.01, 0.01, 0.01, 0.5, 0.99, 0.99]))


# Stochastic rounding


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_rounding_is_unbiased(alphabet: Alphabet) -> None:
    w = torch.tensor([-1.0, -0.9, -0.5, -0.001, 0.0, 0.25, 0.75, 0.999, 1.0])
    draws = 200_000
    votes = round_stack(w.expand(draws, -1).T.contiguous(), alphabet, [Key(1, 0, i).torch("r") for i in range(len(w))])
    assert votes.dtype == torch.int8
    second_moment = torch.ones_like(w) if alphabet == BINARY else w.abs()
    assert_within_5_sigma(votes.double().mean(1), w.double(), second_moment - w**2, draws)


def test_ternary_rounding_has_the_probabilities_of_appendix_a_c() -> None:
    draws = 200_000
    votes = round_ternary(torch.tensor([-0.3, 0.0, 0.6]), torch.rand(draws, 3, generator=Key(2).torch("r")))
    #                    pi_2 = -w 1(w < 0)   1 - pi_1 - pi_2   pi_1 = w 1(w > 0)
    expected = torch.tensor([[0.3, 0.7, 0.0], [0.0, 1.0, 0.0], [0.0, 0.4, 0.6]])
    share = torch.stack([(votes == value).double().mean(0) for value in TERNARY], 1)
    assert_within_5_sigma(share, expected.double(), expected * (1 - expected), draws)


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY])
def test_what_is_certain_is_never_rounded_otherwise(alphabet: Alphabet) -> None:
    """Lots are from [0, 1), of which 0 is one: it must not turn a vote that has probability 0."""
    lots = torch.tensor([0.0, 0.5, 1 - 2**-24])
    for certain in alphabet:
        assert ROUNDING[alphabet](torch.full((3,), float(certain)), lots).tolist() == [certain] * 3


def test_binary_rounding_gives_only_plus_and_minus_one() -> None:
    votes = round_binary(torch.linspace(-1, 1, 1001), torch.rand(1001, generator=Key(3).torch("r")))
    assert votes.dtype == torch.int8 and set(votes.tolist()) == {-1, 1}
    assert votes[[0, -1]].tolist() == [-1, 1]  # certain weights have certain votes


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_rounding_is_repeatable_and_differs_by_client_round_and_purpose(alphabet: Alphabet) -> None:
    w_1D = torch.full((1, 256), 0.5)

    def votes(key: Key, purpose: str = "rounding") -> Tensor:
        return round_stack(w_1D, alphabet, [key.torch(purpose)])

    once = votes(Key(5, 2, 3))
    assert torch.equal(once, votes(Key(5, 2, 3)))
    for other in (votes(Key(6, 2, 3)), votes(Key(5, 3, 3)), votes(Key(5, 2, 4)), votes(Key(5, 2, 3), "tie")):
        assert 0.2 < (once != other).float().mean() < 0.8


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
def test_a_clients_votes_do_not_depend_on_who_else_is_in_the_stack(alphabet: Alphabet) -> None:
    w_KD = torch.rand((4, 100), generator=Key(6).torch("w")) * 2 - 1
    keys = [Key(6, 1, client) for client in range(4)]
    together = round_stack(w_KD, alphabet, [key.torch("rounding") for key in keys])
    for order in ([3, 1], [2], [0, 2, 3, 1]):
        apart = round_stack(w_KD[order], alphabet, [keys[k].torch("rounding") for k in order])
        assert torch.equal(apart, together[order])


def test_every_row_of_a_stack_needs_a_generator() -> None:
    with pytest.raises(ValueError):
        round_stack(torch.zeros(2, 3), BINARY, [Key(0).torch("r")])


def test_rounding_does_not_change_its_argument_nor_the_global_generator() -> None:
    w, before = torch.tensor([[0.1, -0.2, 0.0]]), torch.get_rng_state()
    round_stack(w, TERNARY, [Key(0).torch("r")])
    assert torch.equal(w, torch.tensor([[0.1, -0.2, 0.0]])) and torch.equal(torch.get_rng_state(), before)


def test_thresholding_takes_the_likelier_vote_and_sign_of_zero_is_plus_one() -> None:
    w = torch.tensor([-1.0, -0.6, -0.5, -0.1, -0.0, 0.0, 0.1, 0.5, 0.6, 1.0])
    assert threshold_binary(w).tolist() == [-1, -1, -1, -1, 1, 1, 1, 1, 1, 1]
    assert threshold_ternary(w).tolist() == [-1, -1, 0, 0, 0, 0, 0, 0, 1, 1]
    assert threshold_binary(w).dtype == threshold_ternary(w).dtype == torch.int8


# Tally, soft vote, plurality


def test_equal_votes_are_counted_in_whole_numbers() -> None:
    votes = torch.tensor([[1, -1, 1], [1, -1, -1], [1, 1, -1]], dtype=torch.int8)
    assert tally(votes, torch.ones(3), BINARY).tolist() == [[0, 2, 2], [3, 1, 1]]
    votes = torch.tensor([[1, 0, 1], [0, 0, -1], [1, 0, -1]], dtype=torch.int8)
    assert tally(votes, torch.ones(3), TERNARY).tolist() == [[0, 0, 2], [1, 3, 0], [2, 0, 1]]


def test_counts_of_many_clients_are_exact() -> None:
    clients = 5000
    votes = torch.ones((clients, 2), dtype=torch.int8)
    votes[::3, 1] = -1
    assert tally(votes, torch.ones(clients), BINARY).tolist() == [[0, 1667], [5000, 3333]]


def test_weighted_votes_add_their_weights() -> None:
    votes = torch.tensor([[1, -1, 0], [1, 1, 0], [-1, -1, 1]], dtype=torch.int8)
    total = tally(votes, torch.tensor([0.5, 0.25, 0.25]), TERNARY)
    assert total.tolist() == [[0.25, 0.75, 0.0], [0.0, 0.0, 0.75], [0.75, 0.25, 0.25]]


def test_the_soft_vote_is_twice_the_share_of_plus_one_less_one() -> None:
    total = torch.tensor([[0.0, 1.0, 3.0, 4.0], [4.0, 3.0, 1.0, 0.0]])
    p = total[1] / 4
    assert torch.equal(soft_vote(total, BINARY), 2 * p - 1)
    assert soft_vote(total, BINARY).tolist() == [1.0, 0.5, -0.5, -1.0]


def test_the_soft_vote_does_not_depend_on_the_scale_of_the_weights() -> None:
    votes = torch.tensor([[1, -1, 0], [1, 1, 0], [-1, -1, 1]], dtype=torch.int8)
    weights = torch.tensor([0.5, 0.25, 0.25])
    expected = torch.tensor([0.5, -0.5, 0.25])
    for scale in (1, 8):
        torch.testing.assert_close(soft_vote(tally(votes, scale * weights, TERNARY), TERNARY), expected)


def test_binary_plurality_is_the_sign_of_the_sum() -> None:
    votes = threshold_binary(torch.randn((7, 500), generator=Key(8).torch("votes")))
    won = plurality(tally(votes, torch.ones(7), BINARY), BINARY, Key(8).torch("tie"))
    assert won.dtype == torch.int8 and torch.equal(won, votes.sum(0).sign().to(torch.int8))


def test_ternary_plurality_is_the_most_voted_value_not_the_sign_of_the_sum() -> None:
    votes = torch.tensor([[1, -1, 1], [1, -1, 0], [0, -1, 0], [0, 1, 0], [0, 1, -1]], dtype=torch.int8)
    won = plurality(tally(votes, torch.ones(5), TERNARY), TERNARY, Key(0).torch("tie"))
    assert won.tolist() == [0, -1, 0]


def test_weights_decide_a_plurality() -> None:
    votes = torch.tensor([[1], [-1], [-1]], dtype=torch.int8)
    assert plurality(tally(votes, torch.tensor([3.0, 1.0, 1.0]), BINARY), BINARY, Key(0).torch("tie")).tolist() == [1]


@pytest.mark.parametrize(
    ("total", "alphabet", "winners"),
    [
        ([2.0, 2.0], BINARY, (-1, 1)),
        ([2.0, 1.0, 2.0], TERNARY, (-1, 1)),
        ([0.0, 3.0, 3.0], TERNARY, (0, 1)),
        ([1.0, 1.0, 1.0], TERNARY, (-1, 0, 1)),
    ],
)
def test_ties_are_broken_at_random_and_evenly(total: list[float], alphabet: Alphabet, winners: tuple[int, ...]) -> None:
    D = 30_000
    tied_VD = torch.tensor(total)[:, None].expand(-1, D)
    won = plurality(tied_VD, alphabet, Key(9).torch("tie"))
    assert set(won.tolist()) == set(winners)
    chance = torch.tensor(1 / len(winners), dtype=torch.float64)
    for value in winners:
        assert_within_5_sigma((won == value).double().mean(), chance, chance * (1 - chance), D)
    assert torch.equal(won, plurality(tied_VD, alphabet, Key(9).torch("tie")))
    assert not torch.equal(won, plurality(tied_VD, alphabet, Key(10).torch("tie")))


def test_a_tie_does_not_touch_the_weights_that_are_not_tied() -> None:
    total_VD = torch.tensor([[2.0, 1.0], [2.0, 3.0]]).repeat(1, 500)  # every second weight is tied
    for seed in range(5):
        won = plurality(total_VD, BINARY, Key(seed).torch("tie"))
        assert (won[1::2] == 1).all() and set(won[::2].tolist()) == {-1, 1}


# Levels


@pytest.mark.parametrize("levels", [2, 3, 4, 11, 32, 101, 4097, 2**15])
def test_every_level_survives_the_round_trip(levels: int) -> None:
    every = torch.arange(levels, dtype=torch.int32).to(torch.int16)
    soft = from_level(every, levels)
    assert soft[0] == -1 and soft.abs().max() == 1 and (soft.diff() > 0).all()
    assert to_level(soft, levels).dtype == torch.int16
    assert torch.equal(to_level(soft, levels), every)


@pytest.mark.parametrize(
    ("clients", "alphabet"), [(1, BINARY), (7, BINARY), (31, BINARY), (100, BINARY), (31, TERNARY)]
)
def test_the_soft_vote_of_equal_votes_is_a_level(clients: int, alphabet: Alphabet) -> None:
    levels = (len(alphabet) - 1) * clients + 1
    w_KD = torch.rand((clients, 300), generator=Key(11).torch("w")) * 2 - 1
    votes = round_stack(w_KD, alphabet, [Key(11, 0, k).torch("r") for k in range(clients)])
    soft = soft_vote(tally(votes, torch.ones(clients), alphabet), alphabet)
    torch.testing.assert_close(from_level(to_level(soft, levels), levels), soft, atol=2e-7, rtol=0)


def test_a_soft_vote_goes_to_the_nearest_level() -> None:
    soft = torch.tensor([-1.5, -1.0, -0.76, -0.74, 0.1, 0.26, 1.0, 1.5])
    assert to_level(soft, 5).tolist() == [0, 0, 0, 1, 2, 3, 4, 4]
    assert from_level(torch.tensor([0, 1, 2, 3, 4]), 5).tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]


# Votes that clients train through


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=str)
def test_the_likeliest_vote_is_the_threshold(alphabet: Alphabet) -> None:
    w = torch.tensor([-1.0, -0.51, -0.5, -0.01, 0.0, 0.3, 0.5, 0.51, 1.0])
    threshold = {BINARY: threshold_binary, TERNARY: threshold_ternary}[alphabet]
    assert likeliest(w, alphabet).tolist() == threshold(w).tolist()


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=str)
def test_random_votes_of_equal_weights_have_their_mean_and_change_with_them(alphabet: Alphabet) -> None:
    w = torch.tensor([-0.8, -0.1, 0.0, 0.4])[:, None].repeat(1, 20_000)
    votes = torch.vmap(lambda row: random_vote(row, alphabet))(w)
    assert set(votes.unique().tolist()) <= set(alphabet)
    variance = (1 - w[:, 0].square()) if alphabet == BINARY else w[:, 0].abs() - w[:, 0].square()
    assert_within_5_sigma(votes.mean(1), w[:, 0], variance, 20_000)
    assert torch.equal(votes, random_vote(w, alphabet))
    moved = random_vote(w[3] + 1e-6, alphabet)
    assert float((moved != votes[3]).float().mean()) > 0.2, "a weight that moves a little is rounded anew"


@pytest.mark.parametrize("random", [False, True])
def test_a_share_of_votes_is_between_weight_and_vote_with_the_gradient_of_the_weight(random: bool) -> None:
    w = torch.tensor([-0.6, 0.2, 0.9], requires_grad=True)
    vote = random_vote(w.detach(), BINARY) if random else torch.tensor([-1.0, 1.0, 1.0])
    for share in (0.0, 0.25, 1.0):
        mixed = share_of_votes(w, torch.tensor(share), BINARY, random)
        torch.testing.assert_close(mixed.detach(), (1 - share) * w.detach() + share * vote)
        (gradient,) = torch.autograd.grad(mixed @ torch.tensor([1.0, 2.0, 3.0]), w)
        assert gradient.tolist() == [1, 2, 3]
