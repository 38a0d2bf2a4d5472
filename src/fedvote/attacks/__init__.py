"""Attacks of hostile clients by name, one per file."""

from __future__ import annotations

from fedvote.attacks.a_little_is_enough import ALittleIsEnough
from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.backdoor import Backdoor
from fedvote.attacks.colluders import Colluders
from fedvote.attacks.common_push import CommonPush
from fedvote.attacks.copycat import Copycat
from fedvote.attacks.disagreeing_copycat import DisagreeingCopycat
from fedvote.attacks.framing import Frame
from fedvote.attacks.idle import Idle
from fedvote.attacks.inner_product import InnerProduct
from fedvote.attacks.insider import Insider
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.ladder import Ladder
from fedvote.attacks.late_labels import LateLabels
from fedvote.attacks.layer import Layer
from fedvote.attacks.low_agreement import LowAgreement
from fedvote.attacks.min_max import MinMax
from fedvote.attacks.nothing import Nothing
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.part_time import PartTime
from fedvote.attacks.partial import Partial
from fedvote.attacks.random import Random
from fedvote.attacks.reflect import Reflect
from fedvote.attacks.rotated import Rotated
from fedvote.attacks.single import SINGLE
from fedvote.attacks.sleeper import Sleeper
from fedvote.attacks.team import Team
from fedvote.attacks.vulnerable_votes import VulnerableVotes

ATTACKS: dict[str, type[Attack]] = {
    **SINGLE,
    "colluders": Colluders,
    "part-time": PartTime,
    "idle": Idle,
    "team": Team,
    "late-labels": LateLabels,
    "backdoor": Backdoor,
    "rotated": Rotated,
}

__all__ = [
    "ATTACKS",
    "SINGLE",
    "ALittleIsEnough",
    "Attack",
    "Backdoor",
    "Colluders",
    "CommonPush",
    "Copycat",
    "DisagreeingCopycat",
    "Frame",
    "Idle",
    "InnerProduct",
    "Insider",
    "Inverse",
    "LabelFlip",
    "Ladder",
    "LateLabels",
    "Layer",
    "LowAgreement",
    "MinMax",
    "Nothing",
    "Omniscient",
    "PartTime",
    "Partial",
    "Random",
    "Reflect",
    "Rotated",
    "Seen",
    "Sleeper",
    "Team",
    "VulnerableVotes",
]
