"""Shamir's secret sharing (1979): any `threshold` of the shares give the secret, and fewer tell nothing about it.

A secret is a whole number below a prime p. A share is a point of a random polynomial f over the whole numbers modulo p:

    f(x) = secret + a_1 x + ... + a_(t-1) x^(t-1),    share of x: f(x),    x = 1, 2, ...
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from fedvote.errors import WireError

PRIME = 2**128 - 159  # the largest prime of 16 bytes
BYTES = 16  # of a secret, and of a share
TRIES = 200  # random choices of shares, if some are wrong

Entropy = Callable[[int], bytes]
"""Number of bytes -> that many random bytes, such as os.urandom."""


def random_number(entropy: Entropy) -> int:
    """A whole number below the prime, uniform up to 2^-128."""
    return int.from_bytes(entropy(2 * BYTES), "little") % PRIME


def share(secret: int, xs: Sequence[int], threshold: int, entropy: Entropy) -> list[int]:
    """The secret's shares for the holders at these places."""
    return points([secret, *(random_number(entropy) for _ in range(threshold - 1))], xs)


def points(coefficients: Sequence[int], xs: Sequence[int], prime: int = PRIME) -> list[int]:
    """A polynomial's values, lowest coefficient first, by Horner's rule."""
    values = []
    for x in xs:
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * x + coefficient) % prime
        values.append(value)
    return values


@lru_cache(maxsize=4096)
def lagrange(xs: tuple[int, ...], at: int = 0, prime: int = PRIME) -> list[int]:
    """The weight of each share: f(at) = sum of w_i f(x_i)."""
    weights = []
    for x in xs:
        above, below = 1, 1
        for other in xs:
            if other != x:
                # w_i = product over j != i of (at - x_j) / (x_i - x_j)
                above, below = above * (at - other) % prime, below * (x - other) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return weights


def combine(shares: Mapping[int, int], at: int = 0, prime: int = PRIME) -> int:
    """f(at), from exactly `threshold` shares by their places."""
    xs = tuple(shares)
    return sum(w * shares[x] for w, x in zip(lagrange(xs, at, prime), xs, strict=True)) % prime


def recover(shares: Mapping[int, int], threshold: int, is_secret: Callable[[int], bool]) -> tuple[int, list[int]]:
    """The secret, and the places of wrong shares; WireError if no tried choice of shares gives the secret."""
    if len(shares) < threshold:
        raise WireError(f"{len(shares)} shares of a seed, expected {threshold} or more")
    for attempt, xs in enumerate(_choices(sorted(shares), threshold)):
        chosen = {x: shares[x] for x in xs}
        if is_secret(secret := combine(chosen)):
            # only if the first choice failed: comparing all shares takes longer than everything else
            others = [x for x in shares if x not in chosen] if attempt else []
            return secret, [x for x in others if combine(chosen, x) != shares[x]]
    raise WireError(f"no {threshold} of {len(shares)} shares give a seed that matches its check")


def _choices(xs: list[int], threshold: int) -> chain[list[int]]:
    """Choices of shares to try: neighbours on a circle, of which some avoid any one wrong share; then random ones."""
    draw = random.Random(0)
    circle = ([xs[(first + place) % len(xs)] for place in range(threshold)] for first in range(len(xs)))
    return chain(circle, (draw.sample(xs, threshold) for _ in range(TRIES)))
