"""Min-max goes as far as honest clients are apart, and no farther."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import pytest
import torch
from torch import Tensor

from fedvote.attacks import MinMax
from fedvote.attacks.collusion import Flip
from fedvote.attacks.min_max import Direction, flipped
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from tests.attacks.messages import floats, leaning, many, sent, votes
from tests.toy import assert_close, assert_same


def hamming(a: Tensor, b: Tensor) -> int:
    return int((a != b).sum())


def widest(ballots: Tensor) -> int:
    return max(hamming(a, b) for a, b in combinations(ballots, 2))


def plurality_of(ballots: Tensor) -> Tensor:
    """Of an odd number of binary ballots, so without ties."""
    return ballots.sum(0).sign().char()


def test_three_floats_with_the_answer_typed_in() -> None:
    """Two honest clients 2 apart about a mean of 2: the attack is 2 from the farther of them, so 1 from the mean."""
    honest = floats([1.0, 5.0, 0.0], [3.0, 5.0, 0.0])
    assert_close(sent(MinMax("std"), honest, honest), floats([1.0, 5.0, 0.0], [1.0, 5.0, 0.0]))
    across = floats([-1.0, 2.0, 0.0], [1.0, 2.0, 0.0])  # sqrt(2^2 - 1^2) back along the mean update
    assert_close(sent(MinMax(), across, across), floats([0.0, 2 - 3**0.5, 0.0], [0.0, 2 - 3**0.5, 0.0]))


@pytest.mark.parametrize("direction", get_args(Direction))
def test_floats_reach_the_largest_honest_distance_over_all_tensors(direction: Direction) -> None:
    rows = torch.randn(6, 50, generator=Key(0).torch("rows")) * torch.arange(1.0, 7.0)[:, None]
    honest = {"voted": rows[:, :20], "sketch": rows[:, 20:].view(6, 5, 6)}
    own = {name: values[:2] for name, values in honest.items()}
    unmoved = {"voted": torch.ones(20)}
    message = sent(MinMax(direction), own, honest, unmoved=unmoved)
    forged = torch.cat([message["voted"], message["sketch"].flatten(1)], 1)
    assert torch.equal(forged[0], forged[1])
    farthest = torch.cdist(forged[:1], rows).max()
    torch.testing.assert_close(farthest, torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").max())

    update = rows.mean(0) - torch.cat([torch.ones(20), torch.zeros(30)])
    wanted = -{"std": rows.std(0, correction=0), "unit": update, "sign": update.sign()}[direction]
    assert float(torch.cosine_similarity(forged[0] - rows.mean(0), wanted, dim=0)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("flip", get_args(Flip))
@pytest.mark.parametrize("seed", range(3))
def test_no_honest_ballot_is_farther_away_than_two_of_them_and_one_more_flip_would_be_too_many(
    flip: Flip, seed: int
) -> None:
    honest = leaning(7, seed=seed)["votes"]
    forged = flipped(honest, Key(seed), flip)
    assert max(hamming(forged, ballot) for ballot in honest) == widest(honest)
    assert hamming(forged, plurality_of(honest)) > 0.05 * honest.shape[1]


def test_the_weakest_pluralities_are_flipped_or_the_strongest() -> None:
    honest = leaning(7)["votes"]
    winner, lead = plurality_of(honest), honest.sum(0).abs()
    for flip in get_args(Flip):
        turned = flipped(honest, Key(0), flip) != winner
        if flip == "weakest":
            assert lead[turned].max() <= lead[~turned].min()
        else:
            assert lead[turned].min() >= lead[~turned].max()


def test_weakest_flips_are_more_and_change_more_of_the_plurality() -> None:
    honest = leaning(7)["votes"]
    winner = plurality_of(honest)
    weakest, strongest = (flipped(honest, Key(0), flip) for flip in ("weakest", "strongest"))
    assert hamming(weakest, winner) > hamming(strongest, winner)
    lost = [hamming(plurality_of(torch.cat([honest, forged.expand(4, -1)])), winner) for forged in (weakest, strongest)]
    assert lost[0] > 0.1 * len(winner) and lost[1] == 0


def test_three_votes_with_the_answer_typed_in() -> None:
    """Between ballots there are 2 differences. One flip of the plurality (1, 1, 1) makes 0, 2, 2 and fits; two make
    1, 1, 3 and do not; but all three make 2, 2, 2, which halving an interval would have missed."""
    honest = votes([-1, 1, 1], [1, -1, 1], [1, 1, -1])
    forged = sent(MinMax(), votes([1, 1, 1], [1, 1, 1]), honest)["votes"]
    assert forged.tolist() == [[-1, -1, -1], [-1, -1, -1]]


def test_flips_are_scattered_over_the_weights() -> None:
    """Among equal leads the place of a weight does not matter, else the first layers would bear them all."""
    honest = many([-1, 1], clients=5, count=2000)["votes"]
    turned = flipped(honest, Key(0), "weakest") != plurality_of(honest)
    assert 0.4 < float(turned[:1000].sum() / turned.sum()) < 0.6


def test_a_plurality_of_zero_is_flipped_to_the_rarer_sign() -> None:
    honest = torch.tensor([[0] * 9 + [1, -1], [0] * 9 + [0, 0], [1] * 9 + [-1, 1]], dtype=torch.int8)
    forged = flipped(honest, Key(0), "weakest")
    assert max(hamming(forged, ballot) for ballot in honest) <= widest(honest) == 11
    assert forged[:9].tolist() == [-1] * 9


def test_honest_clients_who_all_agree_leave_no_room() -> None:
    for honest in (votes([1, -1, 1], [1, -1, 1]), floats([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])):
        assert_same(sent(MinMax(), honest, honest), honest)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="direction is 'down', expected one of: unit, std, sign"):
        MinMax(direction="down")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="flip is 'all', expected one of: weakest, strongest"):
        MinMax(flip="all")  # type: ignore[arg-type]
