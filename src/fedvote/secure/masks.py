"""Masks: random bit planes that follow from a seed, by ChaCha20. Plane i is the key stream of nonce i."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from torch import Tensor

from fedvote.randomness.chacha20 import NONCE_BYTES, WORDS, key_stream
from fedvote.secure.planes import add_piece, pieces
from fedvote.secure.shamir import BYTES
from fedvote.system.threads import on_every_core

CHECK_BYTES = 8  # of a seed's hash: the server notices seeds that are put together from wrong shares


def add_masks(planes_MW: Tensor, seeds: Iterable[tuple[int, int]]) -> None:
    """Add the masks of (seed, sign) modulo 2^M, in place: piece by piece, on all cores."""
    added = list(seeds)
    plus, minus = ([_hash(b"mask", seed) for seed, its in added if its == sign] for sign in (1, -1))
    starts = pieces(planes_MW)

    def one(start: int) -> None:
        piece_MP = planes_MW[:, start : start + starts.step]
        _add_streams(piece_MP, plus, start)
        # a - b = ~(~a + b)
        _add_streams(piece_MP.bitwise_not_(), minus, start)
        piece_MP.bitwise_not_()

    on_every_core(one, starts)


def _add_streams(piece_MP: Tensor, keys: Sequence[bytes], start: int) -> None:
    """Add G of each key; the piece begins with this word."""
    bits, words = piece_MP.shape
    for key in keys:
        nonces = (plane.to_bytes(NONCE_BYTES, "little") for plane in range(bits))
        add_piece(piece_MP, [key_stream(key, nonce, words, piece_MP.device, start // WORDS) for nonce in nonces])


def check_of(seed: int) -> bytes:
    """A hash by which the server recognises the seed. It has 128 random bits, so that nobody finds it from the hash."""
    return _hash(b"check", seed)[:CHECK_BYTES]


def _hash(purpose: bytes, seed: int) -> bytes:
    return hashlib.sha256(b"fedvote " + purpose + seed.to_bytes(BYTES, "little")).digest()
