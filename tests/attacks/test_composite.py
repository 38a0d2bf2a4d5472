"""Attacks that are made of other attacks."""

from __future__ import annotations

from typing import Any

import pytest

from fedvote.attacks import Colluders, Idle, Inverse, LabelFlip, Partial, PartTime, Team
from fedvote.errors import ConfigError


@pytest.mark.parametrize("kind", [PartTime, Idle, Colluders], ids=lambda kind: kind.__name__)
def test_an_attack_inside_may_be_given_by_its_name(kind: Any) -> None:
    assert kind("label-flip") == kind(LabelFlip()) and kind(intention="inverse") == kind(Inverse())
    with pytest.raises(ConfigError, match=r"intention 'label-flop' is not known; .* did you mean label-flip"):
        kind("label-flop")


def test_a_team_may_be_given_by_names() -> None:
    named: Any = Team
    assert named("inverse", "partial", LabelFlip()) == Team(Inverse(), Partial(), LabelFlip())
