"""The entropy coder, and a program that counts the bytes of coded symbols.

The library constriction holds Python's global lock while it works, so a thread would stop all others: the program is
a process of its own. It imports nothing of this package, so it starts at once.

A request is a pickled list of (count, dtype, probabilities), then the raw symbols of each block. The answer is a
length, in eight bytes.
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
    """Encode blocks of symbols, each with its own probabilities, as little-endian 32-bit words."""
    from constriction import stream  # late: runs that send plain bits need not install it

    coder = stream.stack.AnsCoder()
    for symbols, probabilities in reversed(blocks):
        model = stream.model.Categorical(probabilities, perfect=False)
        coder.encode_reverse(symbols.astype(np.int32, copy=False), model)
    words: npt.NDArray[np.uint32] = coder.get_compressed()
    return words.astype("<u4").tobytes()


def ask(requests: IO[bytes], answers: IO[bytes], blocks: Sequence[tuple[Symbols, Probabilities]]) -> int:
    """Ask the program how many bytes the coded blocks take."""
    pickle.dump([(len(symbols), symbols.dtype, probabilities) for symbols, probabilities in blocks], requests)
    for symbols, _ in blocks:
        requests.write(np.ascontiguousarray(symbols).view(np.uint8).data)
    requests.flush()
    reply = answers.read(ANSWER.size)
    if len(reply) < ANSWER.size:
        raise BrokenPipeError("the coder process ended without an answer")
    length: int = ANSWER.unpack(reply)[0]
    return length


def answer(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until they end."""
    while requests.peek(1):  # type: ignore[attr-defined]
        heads = pickle.load(requests)
        blocks = [
            (np.frombuffer(requests.read(count * dtype.itemsize), dtype), probabilities)
            for count, dtype, probabilities in heads
        ]
        answers.write(ANSWER.pack(len(encode(blocks))))
        answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this program: it closes stdin
    answer(sys.stdin.buffer, sys.stdout.buffer)
