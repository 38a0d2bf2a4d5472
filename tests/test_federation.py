"""What a run writes down of its rounds, and how many clients may take part or attack."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fedvote import FedVote, Simulation, simulate
from fedvote.errors import ConfigError
from fedvote.runs.config import read
from tests.toy import CLIENTS, dataset, module

D = 72


def simulation(**options: Any) -> Simulation:
    return simulate(module(), dataset(), FedVote(), clients=CLIENTS, rounds=2, steps=1, batch=8, **options)


@pytest.mark.parametrize("cohort", [1, 3, 5])
def test_bits_a_weight_are_those_of_one_client_in_both_directions(cohort: int) -> None:
    for snapshot in simulation(cohort=cohort).run():
        record = snapshot.record
        for way in ("uplink", "downlink"):
            assert record[f"{way}_bits_per_weight"] == pytest.approx(8 * record[f"{way}_bytes"] / (cohort * D))


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("federation.cohort=12", "cohort is 12, expected 0 .* to 11"),
        ("federation.cohort=-1", "cohort is -1, expected 0 "),
        ("federation.hostile=11", "hostile is 11, expected 0 to 10"),
        ("federation.hostile=-1", "hostile is -1, expected 0 to 10"),
    ],
)
def test_no_more_take_part_than_there_are_and_one_at_least_is_honest(setting: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read("quickstart", [setting])


@pytest.mark.parametrize("setting", ["federation.cohort=11", "federation.cohort=1", "federation.hostile=10"])
def test_as_many_as_there_are_may_take_part_and_all_but_one_attack(setting: str) -> None:
    name, _, value = setting.partition("=")
    assert getattr(read("quickstart", [setting]).federation, name.removeprefix("federation.")) == int(value)


def test_batch_norm_is_calibrated_on_as_many_training_examples_as_asked_for() -> None:
    data = dataset()
    for asked, found in ((7, 7), (10_000, len(data.train))):
        x = simulation(calibrate_on=asked).federation.calibration()
        assert len(x) == found
        assert len(torch.unique(torch.cat([x, data.train.x]), dim=0)) == len(torch.unique(data.train.x, dim=0))
    one, other = (simulation(calibrate_on=7, seed=seed).federation.calibration() for seed in (0, 1))
    assert not torch.equal(one, other)
