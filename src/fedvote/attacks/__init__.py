"""What hostile clients do, by name, one attack a file."""

from __future__ import annotations

from fedvote.attacks.attack import Attack, Seen
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.nothing import Nothing
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.partial import Partial
from fedvote.attacks.random import Random
from fedvote.attacks.sleeper import Sleeper

ATTACKS: dict[str, type[Attack]] = {
    "nothing": Nothing,
    "inverse": Inverse,
    "label-flip": LabelFlip,
    "random": Random,
    "omniscient": Omniscient,
    "partial": Partial,
    "sleeper": Sleeper,
}

__all__ = ["ATTACKS", "Attack", "Inverse", "LabelFlip", "Nothing", "Omniscient", "Partial", "Random", "Seen", "Sleeper"]
