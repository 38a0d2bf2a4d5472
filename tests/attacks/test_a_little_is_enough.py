"""A little is enough: z by the formula, mean minus z deviations, and the same in votes."""

from __future__ import annotations

from statistics import NormalDist

import pytest
import torch

from fedvote.attacks import ALittleIsEnough
from fedvote.attacks.a_little_is_enough import hidden
from fedvote.errors import ConfigError
from fedvote.randomness import Key
from tests.attacks.messages import floats, sent, votes
from tests.toy import assert_close, assert_same


@pytest.mark.parametrize(
    ("clients", "hostile", "z"),
    [
        (50, 24, 1.4261),  # s = 2: 24 of 26
        (31, 15, 1.5341),  # s = 1: 15 of 16
        (31, 10, 0.5659),  # s = 6: 15 of 21
        (31, 5, 0.1940),  # s = 11: 15 of 26
        (30, 1, 0.0),  # s = 15: 14 of 29, below one half
        (10, 7, 3.0902),  # a majority: 0.999
        (3, 3, 3.0902),
        (2, 1, 0.0),
    ],
)
def test_z_is_where_the_formula_puts_it(clients: int, hostile: int, z: float) -> None:
    assert hidden(clients, hostile) == pytest.approx(z, abs=1e-4)


def test_as_many_honest_clients_as_a_majority_takes_lie_beyond_z() -> None:
    """Phi(z) of the honest clients are nearer to the mean, on one side; the others make up the majority."""
    for clients in range(9, 40):
        for hostile in range(2, (clients + 1) // 2):
            z = hidden(clients, hostile)
            beyond = (1 - NormalDist().cdf(z)) * (clients - hostile)
            assert z == 0 or hostile + beyond == pytest.approx(clients // 2 + 1)


def test_all_attackers_send_their_mean_less_z_deviations() -> None:
    own = floats([1.0, 5.0, 0.0], [3.0, 5.0, -4.0])
    assert_close(sent(ALittleIsEnough(z=0.5), own), floats([1.5, 5.0, -3.0], [1.5, 5.0, -3.0]))
    z = hidden(31, 2)
    assert_close(sent(ALittleIsEnough(), own, clients=31), sent(ALittleIsEnough(z), own))
    assert_close(sent(ALittleIsEnough(z=0), own), floats([2.0, 5.0, -2.0], [2.0, 5.0, -2.0]))


def test_models_and_updates_come_to_the_same() -> None:
    own, start = torch.randn(4, 20, generator=Key(0).torch("own")), torch.randn(20, generator=Key(0).torch("start"))
    models, updates = (sent(ALittleIsEnough(z=1), {"voted": rows})["voted"] for rows in (own + start, own))
    torch.testing.assert_close(models, updates + start)


def test_what_is_sent_lies_within_the_spread_of_the_honest() -> None:
    """With 15 of 31, one honest client is beyond it, on average over the weights: enough for a majority."""
    rows = torch.randn(31, 500, generator=Key(0).torch("rows"))
    forged = sent(ALittleIsEnough(), {"voted": rows[:15]}, clients=31)["voted"][0]
    beyond = (rows[15:] < forged).float().sum(0)
    assert 0.8 < float(beyond.mean()) < 1.6
    assert -1.6 < float(forged.mean()) < -1.3


def test_one_attacker_alone_sends_what_it_would_have_sent() -> None:
    for own in (floats([1.0, 5.0, 0.0]), votes([1, -1, 1])):
        assert_same(sent(ALittleIsEnough(z=2), own), own)


@pytest.mark.parametrize("z", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("low", [-1, 0], ids=["binary", "ternary"])
def test_votes_are_drawn_about_the_shifted_mean(z: float, low: int) -> None:
    """Of four ballots three say 1 and one says `low`; with ternary votes, 0 is in the alphabet."""
    own = {"votes": torch.tensor([[1], [1], [1], [low]], dtype=torch.int8).repeat(1, 5000)}
    mean = (3 + low) / 4
    deviation = ((3 + low * low) / 4 - mean**2) ** 0.5
    drawn = sent(ALittleIsEnough(z), own)["votes"]
    assert float(drawn.float().mean()) == pytest.approx(max(-1.0, mean - z * deviation), abs=0.02)


def test_votes_on_which_attackers_agree_are_not_shifted() -> None:
    own = votes([1, -1, 1], [1, -1, -1])
    drawn = sent(ALittleIsEnough(z=9), own)["votes"]
    assert drawn.tolist() == [[1, -1, -1], [1, -1, -1]]


@pytest.mark.parametrize("z", [-1.0, float("inf"), float("nan")])
def test_a_z_that_makes_no_sense_is_refused(z: float) -> None:
    with pytest.raises(ConfigError, match=f"z is {z}, expected a finite number from 0 on"):
        ALittleIsEnough(z)
