"""Coders of votes by context, for tests: their alphabets, their votes, and what they must return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from fedvote.codecs import Binary, EntropyVotes, Ternary
from fedvote.core import Codec
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key

ALPHABETS = {"binary": BINARY, "ternary": TERNARY}
every_alphabet = pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)


def implied(alphabet: Alphabet, contexts: int) -> npt.NDArray[np.float64]:
    """(C, V) the shares of votes that soft votes from -1 to 1 imply, as in the method."""
    soft_C = np.linspace(-1, 1, contexts)
    if alphabet == BINARY:
        return np.stack([1 - soft_C, 1 + soft_C], 1) / 2
    return np.stack([np.maximum(-soft_C, 0), 1 - abs(soft_C), np.maximum(soft_C, 0)], 1)


def coder(alphabet: Alphabet, context: Sequence[int] | Tensor, contexts: int) -> EntropyVotes:
    return EntropyVotes(alphabet, torch.as_tensor(context, dtype=torch.int16), implied(alphabet, contexts))


def plain(alphabet: Alphabet, count: int) -> Codec:
    return Binary(count) if alphabet == BINARY else Ternary(count)


def votes_of(alphabet: Alphabet, digits: Sequence[int] | Tensor) -> Tensor:
    return torch.tensor(alphabet, dtype=torch.int8)[torch.as_tensor(digits, dtype=torch.int64)]


def drawn_as(expected_CV: npt.NDArray[np.float64], context: Tensor, alphabet: Alphabet, seed: int = 0) -> Tensor:
    """Votes as `expected_CV` has it."""
    uniform = torch.rand(len(context), 1, generator=Key(seed).torch("votes"), dtype=torch.float64)
    return votes_of(alphabet, (uniform >= torch.from_numpy(expected_CV.cumsum(1)[:, :-1])[context.long()]).sum(1))


def random_context(count: int, contexts: int, seed: int = 0) -> Tensor:
    return torch.randint(contexts, (count,), generator=Key(seed).torch("context"), dtype=torch.int16)


def assert_round_trip(codec: EntropyVotes, x: Tensor) -> bytes:
    payload = codec.encode(x)
    assert isinstance(payload, bytes)
    assert len(payload) <= 1 + len(plain(codec.alphabet, codec.count).encode(x))
    for reader in (codec, replace(codec)):  # the receiver has what the sender has, but made it itself
        back = reader.decode(payload)
        assert back.dtype == torch.int8 and torch.equal(back, x.to(torch.int8))
    back += 1  # what comes back is the receiver's to change
    return payload


def coder_of_one(alphabet: Alphabet, count: int) -> EntropyVotes:
    """One context, in which all values are equally likely."""
    V = len(alphabet)
    return EntropyVotes(alphabet, torch.zeros(count, dtype=torch.int16), np.full((1, V), 1 / V))
