"""Rounding of weights to votes: at random and unbiased, to the likelier vote, and in training."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.quantize import (
    BINARY,
    ROUNDING,
    TERNARY,
    Alphabet,
    likeliest,
    random_vote,
    round_binary,
    round_stack,
    round_ternary,
    share_of_votes,
    threshold_binary,
    threshold_ternary,
)
from fedvote.randomness import Key
from tests.quantize.five_sigma import assert_within_5_sigma


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
