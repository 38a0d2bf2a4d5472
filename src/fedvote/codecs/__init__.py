"""Lossless codecs, one a file, and the frame that carries their payloads."""

from fedvote.codecs.binary import Binary
from fedvote.codecs.float32 import Float32
from fedvote.codecs.frame import Header, pack, unpack
from fedvote.codecs.integers import Integers
from fedvote.codecs.ternary import Ternary

__all__ = ["Binary", "Float32", "Header", "Integers", "Ternary", "pack", "unpack"]
