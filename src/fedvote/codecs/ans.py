"""Asymmetric numeral systems (Duda, 2009) by the library constriction: symbols in, as many bits as they are surprising.

The coder is a stack: what was encoded last is decoded first, so blocks are encoded in reverse. Decoding undoes
encoding step by step, and a coder that is empty after the last symbol proves that its bytes are the only ones that
stand for those symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fedvote.codecs import coder_process as coder
from fedvote.errors import ConfigError, WireError

Probabilities = coder.Probabilities
Blocks = Sequence[tuple[coder.Symbols, Probabilities]]
Symbols = npt.NDArray[np.int32]


def encode(blocks: Blocks) -> bytes:
    """Blocks of symbols, each with the probabilities its symbols are coded by, as little-endian 32-bit words."""
    library()
    return coder.encode(blocks)


def decode(payload: bytes, blocks: Sequence[tuple[int, Probabilities]]) -> list[Symbols]:
    """The symbols of each block, from how many there are and their probabilities."""
    stream = library()
    if len(payload) % 4:
        raise WireError(f"{len(payload)} bytes are not whole 32-bit words")
    try:
        words = stream.stack.AnsCoder(np.frombuffer(payload, "<u4").astype(np.uint32))
    except ValueError as error:
        raise WireError(f"the words end in zeros, which no encoder writes ({error})") from error
    symbols = [words.decode(stream.model.Categorical(p, perfect=False), count) for count, p in blocks]
    if not words.is_empty():
        raise WireError("the words are not the encoding of any symbols: some are left over or missing")
    return symbols


def library() -> Any:
    """Imported late: runs that send plain bits do without it."""
    try:
        from constriction import stream
    except ImportError as error:
        raise ConfigError(
            "entropy coding needs the package constriction, which is not installed: "
            'install it, or send plain bits with --set method.coding="plain"'
        ) from error
    return stream
