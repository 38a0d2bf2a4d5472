"""Lossless codecs, one a file, and the frame that carries their payloads."""

from fedvote.codecs.binary import Binary
from fedvote.codecs.entropy import EntropyVotes
from fedvote.codecs.float32 import LARGEST, Float32
from fedvote.codecs.float_changes import FloatChanges
from fedvote.codecs.float_steps import FloatSteps
from fedvote.codecs.frame import Header, check_head, most_bytes, pack, unpack
from fedvote.codecs.if_changed import IfChanged
from fedvote.codecs.integers import Integers
from fedvote.codecs.levels import Levels
from fedvote.codecs.reference import Start
from fedvote.codecs.signed import Signed
from fedvote.codecs.sketch import Sketch
from fedvote.codecs.tallies import Tallies
from fedvote.codecs.ternary import Ternary
from fedvote.core import Codec

CODECS: tuple[type[Codec], ...] = (
    Binary, Ternary, Integers, Float32, EntropyVotes, Tallies,
    Sketch, Signed, IfChanged, FloatChanges, Levels, FloatSteps,
)  # fmt: skip
TAGS: dict[int, type[Codec]] = {codec.tag: codec for codec in CODECS}

__all__ = [
    "LARGEST",
    "TAGS",
    "Binary",
    "EntropyVotes",
    "Float32",
    "FloatChanges",
    "FloatSteps",
    "Header",
    "IfChanged",
    "Integers",
    "Levels",
    "Signed",
    "Sketch",
    "Start",
    "Tallies",
    "Ternary",
    "check_head",
    "most_bytes",
    "pack",
    "unpack",
]
