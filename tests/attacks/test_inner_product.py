"""Inner-product manipulation goes back along the honest update, whatever a message is measured from."""

from __future__ import annotations

import pytest
import torch

from fedvote.attacks import InnerProduct
from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.methods import FedAvg, FedVote, SignSGD
from fedvote.randomness import Key
from tests.attacks.messages import floats, sent, votes
from tests.toy import Federation, assert_close, assert_same, close_round, hostile_turn

OWN = floats([0.0, 0.0, 0.0], [7.0, 7.0, 7.0])


def test_all_attackers_send_minus_epsilon_times_the_mean_update() -> None:
    honest = floats([1.0, 2.0, -2.0], [3.0, -2.0, -4.0])
    assert_same(sent(InnerProduct(0.5), OWN, honest), floats([-1.0, 0.0, 1.5], [-1.0, 0.0, 1.5]))


def test_models_go_back_from_the_start() -> None:
    honest, start = floats([11.0, 12.0, 8.0], [13.0, 8.0, 6.0]), {"voted": torch.tensor([10.0, 10.0, 10.0])}
    back = sent(InnerProduct(0.5), OWN, honest, unmoved=start)
    assert_same(back, floats([9.0, 10.0, 11.5], [9.0, 10.0, 11.5]))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_votes_are_drawn_about_the_way_back_from_the_soft_vote(epsilon: float) -> None:
    """The honest moved from 0.2 to 0.5; attackers go to 0.2 - 0.3 epsilon, or as far as votes go."""
    honest = {"votes": torch.tensor([[1], [1], [1], [-1]], dtype=torch.int8).repeat(1, 10000)}
    own, soft = {"votes": honest["votes"][:2]}, {"votes": torch.full((10000,), 0.2)}
    drawn = sent(InnerProduct(epsilon), own, honest, unmoved=soft)["votes"]
    assert float(drawn.float().mean()) == pytest.approx(max(-1.0, 0.2 - 0.3 * epsilon), abs=0.02)


def test_where_nothing_is_named_signs_are_measured_from_zero() -> None:
    honest = votes([1, -1, 1], [1, -1, 1])
    assert_same(sent(InnerProduct(1.0), honest, honest), votes([-1, 1, -1], [-1, 1, -1]))


@pytest.mark.parametrize("method", [FedAvg(), FedVote(votes="ternary"), SignSGD()], ids=lambda m: type(m).__name__)
def test_with_one_step_back_for_each_step_forth_the_model_hardly_moves(method: Method) -> None:
    """Epsilon 1 and as many attackers as honest clients: the float model of FedAvg stays where it was, to the digit."""
    federation = Federation(method, seed=0)
    network, start = federation.network, federation.start()
    down, frames = federation.frames(start, 1, range(4))
    forged = hostile_turn(InnerProduct(1.0), method, network, down, frames, {0, 1}, Key(0, 1))
    attacked, plain = (
        method.models(close_round(method, network, start, sent, Key(0, 1)).state)["float"] for sent in (forged, frames)
    )
    before = method.models(start)["float"]
    moved, should = ((model.voted - before.voted) for model in (attacked, plain))
    if isinstance(method, FedAvg):
        assert_close({"moved": moved}, {"moved": torch.zeros_like(moved)})
        assert float(should.norm()) > 0.01
    assert float(moved @ should) < 0.5 * float(should @ should)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf")])
def test_an_epsilon_that_makes_no_sense_is_refused(epsilon: float) -> None:
    with pytest.raises(ConfigError, match=f"epsilon is {epsilon}, expected a finite number above 0"):
        InnerProduct(epsilon)
