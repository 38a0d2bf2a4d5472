"""Shamir's shares: known vectors, any t of them give the secret, t - 1 tell nothing, and wrong ones are found."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest

from fedvote.errors import WireError
from fedvote.randomness import Key
from fedvote.secure.in_process import seeded
from fedvote.secure.shamir import PRIME, combine, lagrange, points, random_number, recover, share

ENTROPY = seeded(Key(0), "test")


def test_the_prime_is_the_largest_of_16_bytes() -> None:
    def is_prime(n: int) -> bool:  # Miller and Rabin, by the bases of the first 20 primes
        odd, twos = n - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71]
        return all(pow(b, odd, n) == 1 or any(pow(b, odd << i, n) == n - 1 for i in range(twos)) for b in primes)

    assert is_prime(PRIME) and not any(is_prime(n) for n in range(PRIME + 1, 2**128))


def test_shares_of_a_known_polynomial() -> None:
    """1234 + 166 x + 94 x^2, a well-known example over whole numbers, and modulo 1613."""
    assert points([1234, 166, 94], range(1, 7), 10**9) == [1494, 1942, 2578, 3402, 4414, 5614]
    assert points([1234, 166, 94], range(1, 7), 1613) == [1494, 329, 965, 176, 1188, 775]
    for three in combinations(zip(range(1, 7), [1494, 329, 965, 176, 1188, 775], strict=True), 3):
        assert combine(dict(three), prime=1613) == 1234


def test_lagrange_weights_typed_in() -> None:
    """f(0) = 3 f(1) - 3 f(2) + f(3) for every parabola."""
    assert lagrange((1, 2, 3)) == [3, PRIME - 3, 1]


@pytest.mark.parametrize(("holders", "threshold"), [(1, 1), (3, 2), (7, 5), (30, 20)])
def test_any_threshold_of_shares_give_the_secret(holders: int, threshold: int) -> None:
    secret, xs = random_number(ENTROPY), list(range(1, holders + 1))
    shares = dict(zip(xs, share(secret, xs, threshold, ENTROPY), strict=True))
    for chosen in (xs[:threshold], xs[-threshold:], xs[::-1][:threshold]):
        assert combine({x: shares[x] for x in chosen}) == secret
    if threshold > 1:
        assert combine({x: shares[x] for x in xs[: threshold - 1]}) != secret
        with pytest.raises(WireError, match=f"{threshold - 1} shares of a seed, expected {threshold} or more"):
            recover({x: shares[x] for x in xs[: threshold - 1]}, threshold, lambda _: True)


def test_one_share_fewer_than_the_threshold_is_equally_likely_for_every_secret() -> None:
    """All polynomials of degree 2 modulo 5: each pair of shares occurs once for each secret."""
    seen = Counter((secret, *points([secret, a, b], (1, 2), 5)) for secret, a, b in product(range(5), repeat=3))
    assert len(seen) == 5**3 and set(seen.values()) == {1}


@pytest.mark.parametrize("wrong", [[1], [4], [9], [2, 7]])
def test_wrong_shares_are_found_and_do_not_matter(wrong: list[int]) -> None:
    secret, xs = random_number(ENTROPY), list(range(1, 10))
    shares = dict(zip(xs, share(secret, xs, 6, ENTROPY), strict=True))
    shares |= {x: (shares[x] + 1 + x * x) % PRIME for x in wrong}
    found, blamed = recover(shares, 6, lambda value: value == secret)
    assert found == secret
    assert sorted(blamed) == wrong or 9 in wrong  # the first choice does not look at the last shares


def test_too_many_wrong_shares_are_an_error() -> None:
    xs = [1, 2, 3, 4]
    shares = dict(zip(xs, share(5, xs, 3, ENTROPY), strict=True)) | {1: 1, 2: 2}
    with pytest.raises(WireError, match="give a seed that matches its check"):
        recover(shares, 3, lambda value: value == 5)
