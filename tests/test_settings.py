"""A value that a field does not declare is refused in programs, too, in every part, before a range test sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
import pytest

import fedvote
from fedvote.aggregate import AGGREGATES, Krum
from fedvote.attacks import ATTACKS
from fedvote.data.augment import AUGMENTATIONS
from fedvote.data.partition import PARTITIONS, Dirichlet
from fedvote.errors import ConfigError
from fedvote.influence import INFLUENCES
from fedvote.methods import METHODS
from fedvote.plan import FlowerOptions
from fedvote.privacy import PRIVACIES
from fedvote.quantize import NORMALISATIONS, Tanh
from fedvote.registry import type_hints
from fedvote.reputation import REPUTATIONS, Camps
from fedvote.secure import SECRECIES
from fedvote.settings import Settings
from fedvote.tasks.losses import LOSSES, Huber
from fedvote.tasks.metrics import F1, METRICS
from fedvote.training.schedules import SCHEDULES, Steps

REGISTRIES: list[dict[str, Any]] = [
    AGGREGATES, ATTACKS, AUGMENTATIONS, INFLUENCES, LOSSES, METHODS, METRICS, NORMALISATIONS, PARTITIONS, PRIVACIES,
    REPUTATIONS, SCHEDULES, SECRECIES,
]  # fmt: skip
PARTS = sorted({part for registry in REGISTRIES for part in registry.values()}, key=lambda part: part.__name__)


@dataclass(frozen=True)
class Part(Settings):
    size: int = 3
    rate: float = 0.5
    mode: Literal["fast", "slow"] = "fast"
    most: float | None = None
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.size < 0 or self.rate < 0 or min(self.places, default=0) < 0:
            raise ConfigError("a number is below 0")


@dataclass(frozen=True)
class Extended(Part):
    name: str = ""

    def __post_init__(self) -> None:
        if self.name.upper() == "WRONG":
            raise ConfigError("name is wrong")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "Fast"}, "mode is 'Fast', expected one of: fast, slow"),
        ({"mode": ["fast"]}, "mode is ['fast'], expected one of: fast, slow"),
        ({"size": "3"}, "size is '3', expected a whole number"),
        ({"size": 3.0}, "size is 3.0, expected a whole number"),
        ({"size": True}, "size is True, expected a whole number"),
        ({"rate": "0.5"}, "rate is '0.5', expected a number"),
        ({"rate": True}, "rate is True, expected a number"),
        ({"most": "3"}, "most is '3', expected a number or None"),
        ({"places": 3}, "places is 3, expected a list of whole numbers"),
        ({"places": "34"}, "places is '34', expected a list of whole numbers"),
        ({"places": (3, 4.5)}, "places is (3, 4.5), expected a list of whole numbers"),
        ({"name": 3}, "name is 3, expected a string"),
    ],
)
def test_a_value_of_another_type_is_refused_before_a_class_tests_its_range(given: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Extended(**given)
    assert str(caught.value) == said


def test_values_become_pythons_own_of_the_declared_type() -> None:
    given: Any = {"size": np.int64(4), "rate": np.float32(0.25), "most": 2, "places": [np.int16(3), 4]}
    part = Part(**given)
    found = [getattr(part, slot.name) for slot in fields(part)]
    assert found == [4, 0.25, "fast", 2.0, (3, 4)]
    assert [type(value) for value in (part.size, part.rate, part.most, part.places[0])] == [int, float, float, int]
    declared: list[Any] = ["fast", "slow"]
    assert [Part(mode=mode).mode for mode in declared] == declared


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_part_refuses_a_word_in_place_of_a_number_or_truth(part: type[Any]) -> None:
    kinds = type_hints(part)
    numbers = [slot.name for slot in fields(part) if kinds[slot.name] in (int, float, bool)]
    for name in numbers:
        with pytest.raises(ConfigError, match=f"^{name} is 'false', expected (a |True)"):
            part(**{name: "false"})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Camps(opponents="false"), "opponents is 'false', expected True or False"),  # type: ignore[arg-type]
        (lambda: fedvote.FedVote(grid=100.5), "grid is 100.5, expected a whole number"),  # type: ignore[arg-type]
        (lambda: fedvote.FedVote(deploy_rounds=1.5), "deploy_rounds is 1.5, expected a whole"),  # type: ignore[arg-type]
        (lambda: fedvote.FedVote(levels=2.5), "levels is 2.5, expected a whole number"),  # type: ignore[arg-type]
        (lambda: fedvote.FedVote(normalisation=Tanh("1.5")), "a is '1.5', expected a number"),  # type: ignore[arg-type]
        (lambda: Steps(at_shares=0.5), "at_shares is 0.5, expected a list of numbers"),  # type: ignore[arg-type]
        (lambda: F1(average="mean"), "average is 'mean', expected one of: macro, micro"),  # type: ignore[arg-type]
        (lambda: FlowerOptions(quorum="1"), "quorum is '1', expected a number"),  # type: ignore[arg-type]
    ],
)
def test_settings_that_would_count_as_others_or_fail_in_a_round_are_refused(make: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{said}"):
        make()


def test_ranges_are_tested_as_before() -> None:
    for make in (lambda: Huber(math.nan), lambda: Dirichlet(alpha=0), lambda: Krum(select=0), lambda: Tanh(0)):
        with pytest.raises(ConfigError, match=r"^(delta is nan|alpha is 0.0|select is 0|a is 0.0), expected"):
            make()


def test_numpys_numbers_are_settings() -> None:
    rate: Any = np.float32(0.25)
    assert fedvote.FedVote(lr=rate) == fedvote.FedVote(lr=0.25)
