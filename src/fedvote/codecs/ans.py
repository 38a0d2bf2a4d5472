"""Asymmetric numeral systems (Duda, 2009), by the library constriction: symbol s takes about -log2 P(s) bits.

The coder is a stack: the last symbol encoded is the first one decoded, so blocks are encoded in reverse. Decoding
undoes encoding step by step. If the coder is empty after the last symbol, no other bytes encode these symbols.
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
    """Encode blocks of symbols, each with its own probabilities, as little-endian 32-bit words."""
    library()
    return coder.encode(blocks)


def decode(payload: bytes, blocks: Sequence[tuple[int, Probabilities]]) -> list[Symbols]:
    """The symbols of each block; a block is given as its number of symbols and their probabilities."""
    decoder = Decoder(payload)
    symbols = [decoder.symbols(count, probabilities) for count, probabilities in blocks]
    decoder.finish()
    return symbols


class Decoder:
    """Decodes block after block: the probabilities of a block may depend on the symbols before it."""

    def __init__(self, payload: bytes):
        self._stream = library()
        if len(payload) % 4:
            raise WireError(f"{len(payload)} bytes are not whole 32-bit words")
        try:
            self._coder = self._stream.stack.AnsCoder(np.frombuffer(payload, "<u4").astype(np.uint32))
        except ValueError as error:
            raise WireError(f"the words end in zeros, which no encoder writes ({error})") from error

    def symbols(self, count: int, probabilities: Probabilities) -> Symbols:
        """The next symbols."""
        decoded: Symbols = self._coder.decode(self._stream.model.Categorical(probabilities, perfect=False), count)
        return decoded

    def finish(self) -> None:
        """Refuse words that are left over."""
        if not self._coder.is_empty():
            raise WireError("the words are not the encoding of any symbols: some are left over or missing")


def library() -> Any:
    """The library constriction, imported late: runs that send plain bits need not install it."""
    try:
        from constriction import stream
    except ImportError as error:
        raise ConfigError(
            "entropy coding needs the package constriction, which is not installed: "
            'install it, or send plain bits with --set method.coding="plain"'
        ) from error
    return stream
