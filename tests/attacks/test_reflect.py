"""Reflect: the votes of some layers go against what the attackers learned, and nothing else changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.attacks import Reflect
from fedvote.errors import ConfigError
from fedvote.quantize import BINARY, round_by_shared_random
from fedvote.randomness import Key
from tests.attacks.messages import floats, sent

N, ATTACKERS = 4000, 6
START = 2 * torch.rand(N, generator=Key(0).torch("start")) - 1
LEARNED = torch.where(torch.arange(N) % 2 == 0, 0.1, -0.1)


def voted(move_N: Tensor) -> Tensor:
    keys = [Key(0, 7, client) for client in range(3, 3 + 2 * ATTACKERS, 2)]  # those of `sent`
    return round_by_shared_random((START + move_N).clamp(-1, 1).expand(ATTACKERS, N), BINARY, keys)


def innovations(votes_HN: Tensor) -> Tensor:
    return (votes_HN - voted(torch.zeros(N))).sign()


@pytest.mark.parametrize("work", [0.5, 1.0, 2.0])
def test_a_layer_pulls_against_what_the_attackers_learned_with_so_much_work(work: float) -> None:
    own = voted(LEARNED)
    forged = sent(Reflect(("second",), work), {"votes": own}, unmoved={"votes": START})["votes"]
    assert torch.equal(forged[:, :2], own[:, :2])
    learned, reflected = innovations(own)[:, 2:], innovations(forged)[:, 2:]
    assert (learned * LEARNED[2:]).sum() > 0.09 * learned.abs().sum()
    assert (reflected * LEARNED[2:]).sum() < -0.09 * reflected.abs().sum()
    assert 0.9 * work * learned.abs().sum() < reflected.abs().sum() <= work * learned.abs().sum()


def test_without_names_it_is_the_first_layer() -> None:
    own = voted(LEARNED)
    forged = sent(Reflect(), {"votes": own}, unmoved={"votes": START})["votes"]
    assert torch.equal(forged[:, 2:], own[:, 2:])
    with pytest.raises(ConfigError, match=r"layers is \('third',\), expected names among: first, second"):
        sent(Reflect(("third",)), {"votes": own}, unmoved={"votes": START})


def test_floats_step_back_by_the_mean_step() -> None:
    own = floats([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    message = sent(Reflect(work=0.5), own, unmoved={"voted": torch.tensor([1.0, 1.0, 1.0])})
    assert message["voted"].tolist() == [[0.5, 0.0, 3.0], [0.5, 0.0, 5.0]]


@pytest.mark.parametrize("work", [0.0, -1.0, float("inf"), float("nan")])
def test_work_is_a_finite_number_above_zero(work: float) -> None:
    with pytest.raises(ConfigError, match=r"work is .*, expected a finite number above 0"):
        Reflect(work=work)
