"""Attacks that are made of other attacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fedvote.attacks import Attack, Colluders, DisagreeingCopycat, Idle, Inverse, LabelFlip, Partial, PartTime, Team
from fedvote.engines.simulate import simulate
from fedvote.errors import ConfigError
from fedvote.fitting_parts import check_poison
from fedvote.methods import FedPAQ
from tests.toy import dataset, module


@pytest.mark.parametrize("kind", [PartTime, Idle, Colluders], ids=lambda kind: kind.__name__)
def test_an_attack_inside_may_be_given_by_its_name(kind: Any) -> None:
    assert kind("label-flip") == kind(LabelFlip()) and kind(intention="inverse") == kind(Inverse())
    with pytest.raises(ConfigError, match=r"intention 'label-flop' is not known; .* did you mean label-flip"):
        kind("label-flop")


def test_a_team_may_be_given_by_names() -> None:
    named: Any = Team
    assert named("inverse", "partial", LabelFlip()) == Team(Inverse(), Partial(), LabelFlip())


@pytest.mark.parametrize(
    ("attack", "needs"),
    [
        (PartTime(Inverse()), set()),
        (PartTime(LabelFlip()), {"poisons"}),
        (PartTime(), {"omniscient", "joint"}),
        (PartTime(DisagreeingCopycat()), {"omniscient", "joint", "draws"}),
        (Idle(Inverse()), {"joint"}),  # whoever idles or attacks depends on the others
        (Colluders(Inverse()), {"joint"}),
        (Team(Inverse(), Partial(), Inverse()), set()),
        (Team(Inverse(), LabelFlip(), DisagreeingCopycat()), {"omniscient", "joint", "draws", "poisons"}),
    ],
    ids=lambda value: "+".join(sorted(value)) or "nothing" if isinstance(value, set) else str(value),  # in one order
)
def test_an_attack_needs_what_the_attacks_inside_need(attack: Attack, needs: set[str]) -> None:
    assert {name for name in ("omniscient", "joint", "draws", "poisons") if getattr(attack, name)} == needs


def test_only_attacks_that_change_labels_need_classes() -> None:
    numbers = replace(dataset(), task="regression")
    for attack in (PartTime(), Idle(), Colluders(), Team(Inverse(), Inverse(), Inverse())):
        check_poison(attack, numbers)
    for attack in (PartTime(LabelFlip()), Idle(LabelFlip()), Colluders(LabelFlip()), Team()):
        with pytest.raises(ConfigError, match="changes classes, but the task of toy is regression"):
            check_poison(attack, numbers)


def test_messages_with_scales_of_their_own_can_be_inverted_part_time() -> None:
    knobs: dict[str, Any] = {"clients": 5, "rounds": 2, "steps": 1, "batch": 8, "hostile": 2, "device": "cpu"}
    assert len(list(simulate(module(), dataset(), FedPAQ(), attack=PartTime(Inverse()), **knobs))) == 2
    with pytest.raises(ConfigError, match="attack PartTime combines the messages of several clients"):
        simulate(module(), dataset(), FedPAQ(), attack=PartTime(), **knobs)
