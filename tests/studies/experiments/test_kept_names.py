"""No setting of a command makes runs that are not what their row and column say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from fedvote.errors import ConfigError
from fedvote.studies.experiments import EXPERIMENTS, Asked
from fedvote.studies.experiments.kept_names import check_names_kept


def check(name: str, setting: str, *only: str) -> None:
    comparison = cast(Any, EXPERIMENTS[name])
    check_names_kept(comparison.cells, comparison.wanted(Asked(only=only)), [setting])


@pytest.mark.parametrize(
    ("name", "setting", "only", "row"),
    [
        ("digits", "method=ef1.py:EF1", ("FedAvg",), "FedAvg"),
        ("digits", "method.name=fedavg", ("FedVote binary",), "FedVote binary"),  # the preset has its method
        ("digits", "method.votes=binary", ("FedVote ternary",), "FedVote ternary"),
        ("table-1", "method.normalisation.a=3", ("a = 0.5",), "iid, a = 0.5"),
        ("table-1", "method.normalisation=hard", (), "iid, a = 0.5"),
        ("table-1", "partition=shards", (), "iid, a = 0.5"),
        ("hostile-cifar10", "attack.work=2.0", ("noise, 15",), "noise, 15, camps"),
        ("hostile-cifar10", "federation.hostile=3", ("layer, 15",), "layer, 15, camps"),
        ("hostile-cifar10", "attack=inverse", ("layer, 15", "camps"), "layer, 15, camps"),
    ],
)
def test_a_setting_that_names_a_row_is_refused(name: str, setting: str, only: tuple[str, ...], row: str) -> None:
    with pytest.raises(ConfigError, match=f"--set {setting} replaces what sets '{row}' apart from other rows"):
        check(name, setting, *only)


@pytest.mark.parametrize(
    ("name", "setting", "only"),
    [
        ("digits", "method.lr=0.01", ()),  # no row has its own
        ("figure-4b", "method.coding=plain", ("FedVote binary",)),  # refines what the row names
        ("hostile-cifar10", "attack.work=1", ("reflect, 15", "camps")),
        ("hostile-cifar10", "method.deploy_rounds=5", ("layer, 15",)),
        ("backdoor-cifar10", "attack.share=0.1", ()),
        ("backdoor-digits", "local.batch=4", ()),  # all rows have the same
        ("figure-5", "rounds=2", ()),
        *(("figure-7", setting, ()) for setting in ("data.name=digits", "model.name=digits-cnn", "local.batch=8")),
        ("figure-7", "engine.compile=true", ()),
    ],
)
def test_other_settings_apply_to_all_rows(name: str, setting: str, only: tuple[str, ...]) -> None:
    check(name, setting, *only)


@pytest.mark.parametrize(
    ("name", "setting", "row", "other"),
    [
        ("digits", "method.votes=ternary", "FedVote binary", "FedVote ternary"),
        ("digits", "method.levels=4", "FedPAQ, s = 1", "FedPAQ, s = 4"),
        (
            "hostile-cifar10",
            "method.deploy_rounds=5",
            "reflect, late, 15",
            "reflect, late, 15, camps, 5 rounds deployed",
        ),
    ],
)
def test_a_row_that_is_named_after_a_default_does_not_become_another_row(
    name: str, setting: str, row: str, other: str
) -> None:
    with pytest.raises(ConfigError, match=f"--set {setting} makes '{row}.*' the run of '{other}'"):
        check(name, setting, row)


@pytest.mark.parametrize("name", ["digits", "hostile-digits"])
def test_it_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--set (federation\.hostile=3|method=fedavg) replaces what"):
        next(iter(EXPERIMENTS[name].measure(Asked(settings=("federation.hostile=3", "method=fedavg")), tmp_path)))
    assert not list(tmp_path.iterdir())


def test_a_title_names_what_was_changed() -> None:
    assert Asked(settings=("attack.work=1",), rounds=2).titled("Rules") == "Rules; changed: attack.work=1, rounds=2"
    assert Asked().titled("Rules") == "Rules"
