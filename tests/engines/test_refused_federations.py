"""Federations that cannot run are refused in a sentence; a client without numbers has no vote."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedvote import ConfigError, DataError, FedAvg, FedVote, ModelError, from_arrays
from fedvote.engines.simulate import simulate
from fedvote.method import Method
from fedvote.methods import SignSGD, Signum
from tests.engines.simulated import simulated
from tests.toy import dataset, module

VOTING = [FedVote(), FedVote(coding="plain"), FedVote(votes="ternary"), SignSGD(), Signum()]


@pytest.mark.parametrize("wire", ["weighed", "written"])
@pytest.mark.parametrize("method", VOTING, ids=str)
def test_a_client_whose_training_makes_no_numbers_has_no_vote(method: Method, wire: str) -> None:
    data = dataset()
    data.train.x[7 * 8 :] = math.nan  # of all but the first client
    rows = [torch.arange(56), *torch.arange(56, 200).split(36)]
    chosen: dict[str, Any] = {"clients": 5, "rounds": 2, "steps": 4, "batch": 8, "device": "cpu", "wire": wire}
    for snapshot in simulate(module(), data, method, owned=rows, **chosen).run():
        assert sorted(snapshot.record["refused"]) == [1, 2, 3, 4]
        assert snapshot.record["uplink_bytes"] > 0
        for values in (*snapshot.state.values(), *snapshot.memory.values()):
            assert values.isfinite().all()


@pytest.mark.parametrize(
    ("rows", "error", "saying"),
    [
        (torch.arange(400), ConfigError, "client 1 examples 0 to 399, expected 0 to 199"),
        (torch.tensor([-1, 3]), ConfigError, "client 1 examples -1 to 3"),
        (torch.arange(0), DataError, "client 1 has no training examples"),
    ],
)
def test_what_clients_own_is_checked(rows: Tensor, error: type[Exception], saying: str) -> None:
    with pytest.raises(error, match=saying):
        next(simulated(clients=2, owned=[torch.arange(40), rows]).run())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rounds": 0}, "rounds is 0, expected 1 or more"),
        ({"steps": 0}, "steps is 0, expected"),
        ({"batch": -1}, "batch is -1, expected"),
        ({"clients": 0}, "clients is 0, expected"),
        ({"test_batch": 0}, "test_batch is 0, expected"),
        ({"calibrate_on": 0}, "calibrate_on is 0, expected"),
        ({"cohort": 6}, "cohort is 6, expected 0 (everybody) to 5"),
        ({"cohort": -1}, "cohort is -1, expected 0 (everybody) to 5"),
        ({"stack": -1}, "stack is -1, expected 0"),
        ({"device": "gpu"}, "device is 'gpu', expected auto, cpu or cuda"),
        ({"precision": "float64"}, "precision is 'float64', expected one of: auto, float32, bfloat16"),
        ({"precision": "bfloat16"}, "use auto or float32"),
    ],
    ids=str,
)
def test_a_federation_that_cannot_run_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        simulated(**options)


def test_a_module_that_does_not_fit_the_data_is_refused() -> None:
    with pytest.raises(ModelError, match=re.escape("the data has 3 classes: expected (3,)")):
        simulate(nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)), dataset(), clients=2, rounds=1, batch=8)


@pytest.mark.parametrize("last", [nn.Identity(), nn.Flatten(0)], ids=["(n, 1)", "(n,)"])
def test_one_output_for_two_classes_is_told_what_then_learns(last: nn.Module) -> None:
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    y, one = x[:, 0] > 0, [nn.Linear(6, 1)]
    options: dict[str, Any] = {"clients": 2, "rounds": 3, "batch": 20, "device": "cpu", "start": "seed"}
    with pytest.raises(ModelError, match=r"expected \(2,\); .*, for one output \(n, 1\), .*multi-label.* y\[:, None\]"):
        simulate(nn.Sequential(*one, last), from_arrays(x, y, x, y), FedAvg(), **options)
    data = from_arrays(x, y[:, None], x, y[:, None], task="multi-label")
    *_, snapshot = simulate(nn.Sequential(*one), data, FedAvg(lr=0.1), **options)
    assert snapshot.record["f1"] > 0.9


@pytest.mark.parametrize("epochs", [-1.0, float("inf"), float("nan")])
def test_epochs_that_are_none_are_refused(epochs: float) -> None:
    with pytest.raises(ConfigError, match="epochs is"):
        simulated(epochs=epochs)
