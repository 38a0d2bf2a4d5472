"""The simulator, one client at a time, and Flower give the same bits: state, accuracy, bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.engines.flower.grid import elect, grid_of, in_the_simulator, small
from tests.toy import assert_same

METHODS = {
    "binary": ("method.votes=binary",),
    "convolutions": ("model.name=digits-cnn",),
    "ternary": ("method.votes=ternary",),
    "reputation": ("method.reputation=proportional",),
    "trained floats": ("method.train_float=true",),
    "trained floats in levels": ("method.train_float=true", "method.float_levels=7", "federation.cohort=3", "rounds=4"),
    "augmented, by schedules": (
        'data.augment=[{name="crop", pixels=1}, "rotation", "noise"]',
        "local.lr_schedule=cosine",
        "local.steps_schedule=linear",
        "local.steps_schedule.end=0.5",
        "method.sign_share=0.5",
        "method.deploy_rounds=2",
    ),
    "fedavg": ("method=fedavg",),
    "few levels": ("method.levels=3", "method.level_rounding=random", "federation.cohort=3", "rounds=4"),
    "changes, carried": (
        "method.counts=changes",
        "method.levels=5",
        "method.level_rounding=carry",
        "federation.cohort=3",
        "rounds=4",
    ),
    "earlier broadcasts": (
        "method.counts=changes",
        "method.levels=3",
        "method.level_rounding=carry",
        "federation.cohort=2",
        "federation.kept_broadcasts=4",
        "rounds=6",
    ),
    "few steps": ("method=fedavg", "method.down_levels=3", "federation.cohort=3", "rounds=4"),
    "client memory": ("method=signum",),
    "votes of a cohort": ("federation.cohort=2", "rounds=4"),
    "a cohort": ("method=signum", "federation.cohort=2"),
    "hostile": ("federation.hostile=1", "attack=inverse", "method.reputation=cut"),
    "poisoned": ("federation.hostile=1", "attack=label-flip"),
    "backdoor": ("federation.hostile=2", "attack=backdoor", "attack.trigger=distributed"),
}


SECRET = bytes(range(32))


@pytest.mark.parametrize("settings", METHODS.values(), ids=list(METHODS))
def test_both_engines_agree_to_the_bit(settings: tuple[str, ...], tmp_path: Path) -> None:
    config = small(*settings)
    for a, b in zip(in_the_simulator(config), elect(config, grid_of(4), tmp_path), strict=True):
        assert a.round == b.round
        assert_same(a.state, b.state)
        for name in a.record.keys() - {"seconds", "seconds_training"}:
            assert a.record[name] == b.record[name], name


@pytest.mark.parametrize("method", ["fedvote", "fedpaq"])
def test_engines_that_are_given_one_secret_agree_to_the_bit_and_another_secret_gives_other_bits(
    method: str, tmp_path: Path
) -> None:
    config = small(f"method={method}", "rounds=2")
    simulated = in_the_simulator(config, SECRET)[-1].state
    assert_same(simulated, list(elect(config, grid_of(4), tmp_path, secret=SECRET))[-1].state)
    other = in_the_simulator(config)[-1].state
    assert any(not torch.equal(simulated[name], other[name]) for name in simulated)
