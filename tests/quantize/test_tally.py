"""Tally, soft vote, plurality, and the levels of a soft vote."""

from __future__ import annotations

import pytest
import torch

from fedvote.quantize import (
    BINARY,
    TERNARY,
    Alphabet,
    from_level,
    plurality,
    round_stack,
    soft_vote,
    tally,
    threshold_binary,
    to_level,
)
from fedvote.randomness import Key
from tests.quantize.five_sigma import assert_within_5_sigma


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
