"""Masks: random bit planes that follow from a seed, by ChaCha20. Plane i is the key stream of nonce i."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

from fedvote.randomness.chacha20 import NONCE_BYTES, key_stream
from fedvote.secure.planes import add
from fedvote.secure.shamir import BYTES

CHECK_BYTES = 8  # of a seed's hash: the server notices seeds that are put together from wrong shares


def mask(seed: int, bits: int, words: int, device: torch.device) -> Tensor:
    """(bits, words) G(seed): uniform for all who do not know the seed."""
    key = _hash(b"mask", seed)
    planes = (key_stream(key, plane.to_bytes(NONCE_BYTES, "little"), words, device) for plane in range(bits))
    return torch.stack(list(planes))


def add_masks(planes_MW: Tensor, seeds: Iterable[tuple[int, int]]) -> None:
    """Add the masks of (seed, sign) modulo 2^M, in place."""
    bits, words = planes_MW.shape
    for seed, sign in seeds:
        add(planes_MW, mask(seed, bits, words, planes_MW.device), sign)


def check_of(seed: int) -> bytes:
    """A hash by which the server recognises the seed. It has 128 random bits, so that nobody finds it from the hash."""
    return _hash(b"check", seed)[:CHECK_BYTES]


def _hash(purpose: bytes, seed: int) -> bytes:
    return hashlib.sha256(b"fedvote " + purpose + seed.to_bytes(BYTES, "little")).digest()
