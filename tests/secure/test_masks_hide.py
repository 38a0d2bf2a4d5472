"""What the server holds of a client is uniform, and shares give away no more than the tally needs."""

from __future__ import annotations

import numpy as np
import torch

from fedvote.secure.messages import (
    HEAD,
    read_ballot,
    read_voters,
)
from fedvote.secure.planes import from_bytes, to_numbers
from tests.secure.parties import Parties, parties


def residues(round: Parties, client: int, numbers_n: torch.Tensor) -> torch.Tensor:
    """What the server holds of one client."""
    masked = read_ballot(round.ballot(client, numbers_n), round.session, client)
    return to_numbers(from_bytes(masked.planes, round.terms.count, round.session.bits), round.terms.count)


def chi_square(counts: np.ndarray) -> float:
    """Standard deviations by which counts are less even than chance makes them."""
    expected = counts.sum() / counts.size
    degrees = counts.size - 1
    return float((((counts - expected) ** 2 / expected).sum() - degrees) / (2 * degrees) ** 0.5)


def test_what_the_server_holds_of_a_client_is_uniform_whatever_the_ballot() -> None:
    """Chi-square of residues, of every bit plane, and of two ballots against each other."""
    count = 2**16
    round = parties(31, count)
    no, yes = torch.zeros(count, dtype=torch.int32), torch.ones(count, dtype=torch.int32)
    held = [residues(round, 7, no), residues(parties(31, count, seed=1), 7, yes)]
    for residues_n in held:
        assert abs(chi_square(np.bincount(residues_n, minlength=32))) < 4
        for plane in range(5):
            assert abs(chi_square(np.bincount(residues_n >> plane & 1, minlength=2))) < 4
    pairs = np.bincount(held[0] * 32 + held[1], minlength=1024)
    assert abs(chi_square(pairs)) < 4


def test_the_own_seed_alone_hides_a_ballot_and_so_do_the_pair_seeds() -> None:
    """A late voter's pair seeds are revealed, a voter's own seed is: what is left is uniform in both cases."""
    from fedvote.secure.masks import add_masks
    from fedvote.secure.pairwise import pair_seed
    from fedvote.secure.planes import to_planes
    from fedvote.secure.shamir import random_number

    count = 2**15
    round = parties(5, count)
    x = torch.ones(count, dtype=torch.int32)
    own = random_number(round.entropy(2))
    pairs = [
        (pair_seed(round.pairs[2].secret_with(round.keys[o].public), round.session.id, 2, o), -1 if o < 2 else 1)
        for o in (0, 1, 3, 4)
    ]
    for known in ([(own, -1)], pairs):
        planes = to_planes(residues(round, 2, x), round.session.bits)
        add_masks(planes, known)
        assert abs(chi_square(np.bincount(to_numbers(planes, count), minlength=8))) < 4
    planes = to_planes(residues(round, 2, x), round.session.bits)
    add_masks(planes, [(own, -1), *pairs])
    assert torch.equal(to_numbers(planes, count), x)  # with both, nothing is hidden: never both


def test_ballots_of_one_client_in_two_sessions_share_no_mask() -> None:
    one, two = parties(4, 2**12), parties(4, 2**12, round=2)
    x = torch.zeros(2**12, dtype=torch.int32)
    difference = (residues(one, 0, x) - residues(two, 0, x)) % 8
    assert abs(chi_square(np.bincount(difference, minlength=8))) < 4


def test_a_request_carries_no_bundle_of_a_client_that_did_not_vote() -> None:
    round = parties(5)
    round.vote(without=[4])
    _, _, voters, bundles = read_voters(round.server.request(0), round.terms, 0)
    assert voters == frozenset(range(4)) and sorted(bundles) == [1, 2, 3]


def test_helpers_learn_and_give_away_one_kind_of_share_of_each_client() -> None:
    """For a voter without missing neighbours 17 bytes: one share of its own seed, and nothing of its pair seeds."""
    round = parties(5)
    round.vote()
    assert len(round.shares(0)) - HEAD.size - 4 == 4 * 17
    with_missing = parties(5)
    with_missing.vote(without=[4])
    assert len(with_missing.shares(0)) - HEAD.size - 4 == 3 * (17 + 16)
