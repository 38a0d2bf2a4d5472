"""--set a.b=c changes one key, or a whole part by its name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from fedvote import FedAvg, FedVote
from fedvote.data.partition import IID
from fedvote.errors import ConfigError
from fedvote.reputation import Proportional, Uniform
from fedvote.runs.config import read
from tests.runs.tables import refuse


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("rounds=7", "rounds", 7),
        ("method.lr=0.5", "method.lr", 0.5),
        ("method.lr=1e-3", "method.lr", 0.001),
        ("method.votes=ternary", "method.votes", "ternary"),
        ('method.votes="ternary"', "method.votes", "ternary"),
        ("method.train_float=true", "method.train_float", True),
        ("method.reputation=proportional", "method.reputation", Proportional()),
        ("method.reputation.name=uniform", "method.reputation", Uniform()),
        ("partition=iid", "partition", IID()),
        ("partition.alpha=2", "partition.alpha", 2.0),
        ("data=cifar10", "data.name", "cifar10"),
        ("data.name=femnist", "data.name", "femnist"),
        ('model.keep_float=["0"]', "model.keep_float", ("0",)),
        ("method.optimizer_options.betas=[0.5, 0.9]", "method.optimizer_options", {"betas": [0.5, 0.9]}),
        ('method={name = "fedavg", lr = 0.25}', "method", FedAvg(lr=0.25)),
    ],
)
def test_a_setting_changes_one_key(setting: str, path: str, value: Any) -> None:
    found: Any = read("quickstart", [setting])
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value and type(found) is type(value)


def test_settings_leave_everything_else_and_later_ones_win() -> None:
    assert read("quickstart", ["rounds=2", "rounds=5"]) == dataclasses.replace(read("quickstart"), rounds=5)


def test_a_name_for_a_whole_part_replaces_it() -> None:
    assert read("quickstart", ["method=fedavg"]).method == FedAvg()
    assert read("quickstart", ["method=fedavg", "method.lr=0.5"]).method == FedAvg(lr=0.5)
    assert read("quickstart", ["method.lr=0.5"]).method == FedVote(lr=0.5)


def test_the_name_of_a_part_that_is_there_changes_nothing() -> None:
    assert read("quickstart", ["method=fedvote"]) == read("quickstart")
    assert read("quickstart", ["method=fedavg"]).method == FedAvg()


def test_a_name_that_would_undo_a_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set method=fedavg would undo --set method\.lr=0\.5: put it first"):
        read("quickstart", ["method.lr=0.5", "method=fedavg"])
    assert read("quickstart", ["method=fedavg", "method.lr=0.5"]).method == FedAvg(lr=0.5)


@pytest.mark.parametrize("setting", ["rounds", "=3", "method.=3", ".lr=3", "method..lr=3", ""])
def test_what_is_not_a_setting_is_refused_with_an_example(setting: str) -> None:
    refuse("is not of the form a.b=c; for example --set method.lr=0.01", "", setting)


def test_a_value_has_no_keys() -> None:
    refuse("rounds is a value, not a table", "rounds = 3", "rounds.most=4")
