"""Attacks that are not made of other attacks, by name."""

from __future__ import annotations

from fedvote.attacks.a_little_is_enough import ALittleIsEnough
from fedvote.attacks.attack import Attack
from fedvote.attacks.common_push import CommonPush
from fedvote.attacks.copycat import Copycat
from fedvote.attacks.disagreeing_copycat import DisagreeingCopycat
from fedvote.attacks.framing import Frame
from fedvote.attacks.inner_product import InnerProduct
from fedvote.attacks.insider import Insider
from fedvote.attacks.inverse import Inverse
from fedvote.attacks.label_flip import LabelFlip
from fedvote.attacks.ladder import Ladder
from fedvote.attacks.layer import Layer
from fedvote.attacks.low_agreement import LowAgreement
from fedvote.attacks.min_max import MinMax
from fedvote.attacks.nothing import Nothing
from fedvote.attacks.omniscient import Omniscient
from fedvote.attacks.partial import Partial
from fedvote.attacks.random import Random
from fedvote.attacks.reflect import Reflect
from fedvote.attacks.sleeper import Sleeper
from fedvote.attacks.vulnerable_votes import VulnerableVotes

SINGLE: dict[str, type[Attack]] = {
    "nothing": Nothing,
    "inverse": Inverse,
    "label-flip": LabelFlip,
    "random": Random,
    "omniscient": Omniscient,
    "partial": Partial,
    "layer": Layer,
    "sleeper": Sleeper,
    "copycat": Copycat,
    "disagreeing-copycat": DisagreeingCopycat,
    "a-little-is-enough": ALittleIsEnough,
    "inner-product": InnerProduct,
    "min-max": MinMax,
    "low-agreement": LowAgreement,
    "ladder": Ladder,
    "vulnerable-votes": VulnerableVotes,
    "insider": Insider,
    "common-push": CommonPush,
    "reflect": Reflect,
    "frame": Frame,
}
