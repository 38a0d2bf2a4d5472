"""The coder itself, and a program that tells how many bytes it makes of symbols.

The library constriction holds Python's lock while it works: in a thread it would stop all others. The program has a
core, and a lock, of its own. It imports nothing of this package, so that it starts at once.

A request is a pickled list of (count, type, probabilities), then the symbols of each block as they are in memory; the
answer is a number of eight bytes.
"""

from __future__ import annotations

import pickle
import signal
import struct
import sys
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

Symbols = npt.NDArray[Any]
Probabilities = npt.NDArray[np.float64]
ANSWER = struct.Struct("<q")


def encode(blocks: Sequence[tuple[Symbols, Probabilities]]) -> bytes:
    """Blocks of symbols, each with the probabilities its symbols are coded by, as little-endian 32-bit words."""
    from constriction import stream  # late: runs that send plain bits do without it

    coder = stream.stack.AnsCoder()
    for symbols, probabilities in reversed(blocks):
        model = stream.model.Categorical(probabilities, perfect=False)
        coder.encode_reverse(symbols.astype(np.int32, copy=False), model)
    words: npt.NDArray[np.uint32] = coder.get_compressed()
    return words.astype("<u4").tobytes()


def ask(into: IO[bytes], out: IO[bytes], blocks: Sequence[tuple[Symbols, Probabilities]]) -> int:
    """How many bytes the program at the other end makes of the blocks."""
    pickle.dump([(len(symbols), symbols.dtype, probabilities) for symbols, probabilities in blocks], into)
    for symbols, _ in blocks:
        into.write(np.ascontiguousarray(symbols).view(np.uint8).data)
    into.flush()
    said = out.read(ANSWER.size)
    if len(said) < ANSWER.size:
        raise BrokenPipeError("the program has gone")
    length: int = ANSWER.unpack(said)[0]
    return length


def answer(asked: IO[bytes], out: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    while asked.peek(1):  # type: ignore[attr-defined]
        heads = pickle.load(asked)
        blocks = [
            (np.frombuffer(asked.read(count * dtype.itemsize), dtype), probabilities)
            for count, dtype, probabilities in heads
        ]
        out.write(ANSWER.pack(len(encode(blocks))))
        out.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks says when to end
    answer(sys.stdin.buffer, sys.stdout.buffer)
