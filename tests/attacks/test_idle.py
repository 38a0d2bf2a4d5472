"""Idle attackers vote as if untrained, or as if they had learned something random; the others attack."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Idle, Inverse
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from tests.attacks.messages import floats, sent

N, ATTACKERS = 4000, 6
START = 2 * torch.rand(N, generator=Key(0).torch("start")) - 1


def voted(move_N: Tensor) -> Tensor:
    keys = [Key(0, 7, client) for client in range(3, 3 + 2 * ATTACKERS, 2)]  # those of `sent`
    return round_by_shared_random((START + move_N).clamp(-1, 1).expand(ATTACKERS, N), BINARY, keys)


OWN, UNTRAINED = voted(torch.full((N,), 0.2)), voted(torch.zeros(N))


def test_idle_ballots_have_no_innovation_and_the_others_attack() -> None:
    message = sent(Idle(Inverse(), 4), {"votes": OWN}, unmoved={"votes": START})["votes"]
    assert torch.equal(message[:4], UNTRAINED[:4]) and torch.equal(message[4:], -OWN[4:])


@pytest.mark.parametrize("work", [0.5, 1.0])
def test_random_innovations_are_so_many_and_have_nothing_in_common(work: float) -> None:
    message = sent(Idle(Inverse(), 4, work), {"votes": OWN}, unmoved={"votes": START})["votes"]
    made, own = ((votes - UNTRAINED)[:4].sign().float() for votes in (message, OWN))
    for row in range(4):
        assert 0.95 * work * own[row].abs().sum() < made[row].abs().sum() <= work * own[row].abs().sum()
        assert made[row].sum().abs() < 5 * made[row].abs().sum().sqrt() < own[row].sum(), "in no direction"
    assert all((made[a] @ made[b]).abs() < 5 * made[a].abs().sum().sqrt() for a in range(4) for b in range(a))
    assert torch.equal(message[4:], -OWN[4:])


def test_every_two_may_have_a_part_of_their_random_innovations_in_common() -> None:
    message = sent(Idle(Inverse(), 4, 1.0, common=1.0), {"votes": OWN}, unmoved={"votes": START})["votes"]
    made = (message - UNTRAINED)[:4].sign()
    for a, b, agree in ((0, 1, 1.0), (2, 3, 1.0), (1, 2, 0.5)):
        both = (made[a] != 0) & (made[b] != 0)
        assert (made[a] == made[b])[both].float().mean() == pytest.approx(agree, abs=0.2)


def test_floats_move_as_far_as_their_own_in_a_random_direction() -> None:
    own = floats([3.0] * 400, [1.0] * 400)
    message = sent(Idle(Inverse(), 1, work=1.0), own, unmoved={"voted": torch.ones(400)})["voted"]
    assert (message[0] - 1).norm() == pytest.approx(40, rel=0.2) and abs(float((message[0] - 1).mean())) < 0.5
    assert sent(Idle(Inverse(), 1), own, unmoved={"voted": torch.ones(400)})["voted"][0].tolist() == [1.0] * 400


@pytest.mark.parametrize("work", [-1.0, float("inf"), float("nan")])
def test_work_is_a_finite_number(work: float) -> None:
    with pytest.raises(ConfigError, match=r"work is .*, expected a finite number, 0 or above"):
        Idle(work=work)


@pytest.mark.parametrize("common", [-0.1, 1.5, float("nan")])
def test_what_pairs_have_in_common_is_a_share(common: float) -> None:
    with pytest.raises(ConfigError, match=r"common is .*, expected a share from 0 to 1"):
        Idle(work=1.0, common=common)
