"""What methods with float weights share."""

from __future__ import annotations

import pytest
import torch

from fedvote import FedAvg
from fedvote.aggregate.mean import weighted_sum
from fedvote.methods.update import move, trained_weights
from fedvote.randomness import Key
from tests.toy import Federation, batches, keys

STATE = {"voted": torch.tensor([1.0, 2.0, 3.0]), "float": torch.tensor([4.0, 5.0]), "other": torch.ones(1)}


def test_an_update_is_subtracted() -> None:
    moved = move(STATE, torch.tensor([1.0, 0.0, -1.0, 0.5, 0.0]))
    assert {name: value.tolist() for name, value in moved.items()} == {"voted": [0, 2, 4], "float": [3.5, 5]}


def test_frozen_weights_have_no_place_in_an_update_and_stay() -> None:
    state = {**STATE, "float_trains": torch.tensor([False, True])}
    assert (trained_weights(STATE), trained_weights(state)) == (5, 4)
    moved = move(state, torch.tensor([1.0, 0.0, -1.0, 0.5]))
    assert {name: value.tolist() for name, value in moved.items()} == {
        "voted": [0, 2, 4], "float": [4, 4.5], "float_trains": [False, True],
    }  # fmt: skip


def test_an_update_is_what_training_took_away() -> None:
    method, federation = FedAvg(lr=0.1), Federation(FedAvg(lr=0.1))
    down, turn = federation.start(), batches(federation.data, (0, 1, 4))
    ends, _ = method.local(federation.network, down, turn, {}, keys((0, 1, 4)))
    update_KN = method.update(federation.network, down, turn)
    assert float(update_KN.abs().max()) > 0.1
    for end_D, end_F, update_N in zip(ends["voted"], ends["float"], update_KN, strict=True):
        moved = move(down, update_N)
        torch.testing.assert_close(moved["voted"], end_D)
        torch.testing.assert_close(moved["float"], end_F)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.float32])
def test_a_weighted_sum_is_one_whatever_is_summed(dtype: torch.dtype) -> None:
    generator = Key(0).torch("test")
    rows, weights = torch.randint(-9, 10, (7, 50), generator=generator).to(dtype), torch.rand(7, generator=generator)
    found = weighted_sum(weights, rows)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), weights.double() @ rows.double(), rtol=1e-5, atol=1e-5)
