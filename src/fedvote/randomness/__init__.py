"""Random numbers: a key for every draw of a run, and the numbers that a client shares with the server alone."""

from __future__ import annotations

from fedvote.randomness.key import SECRET_BYTES, SERVER, Key, run_secret
from fedvote.randomness.random_rows import random_rows, scramble
from fedvote.randomness.shared_random import BITS, as_uniform, shared_random, shared_random_at

__all__ = [
    "BITS",
    "SECRET_BYTES",
    "SERVER",
    "Key",
    "as_uniform",
    "random_rows",
    "run_secret",
    "scramble",
    "shared_random",
    "shared_random_at",
]
