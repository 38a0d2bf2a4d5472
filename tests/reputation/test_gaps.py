"""Gaps above a camp: who is beyond one, and who only seems to agree with everybody."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fedvote.reputation import Camps
from fedvote.reputation.gaps import Line, widest_gap

PLACES = torch.tensor([0.0, 0.01, 0.02, 0.03, 1.0, 1.1], dtype=torch.float64)


def agreement(*pairs: tuple[int, int]) -> Tensor:
    """(6, 6) cosines: 0.02 of all ballots, 0.6 of these pairs."""
    alike_KK = torch.full((6, 6), 0.02, dtype=torch.float64).fill_diagonal_(1)
    for a, b in pairs:
        alike_KK[a, b] = alike_KK[b, a] = 0.6
    return alike_KK


def beyond(heads: Tensor) -> tuple[float, list[int]]:
    width, _, camp = widest_gap([Line(PLACES, 0.05)], heads.double(), float(heads.sum()) / 2, 3.0)
    return width, sorted(camp.tolist())


def test_ballots_far_above_the_majority_are_beyond_the_gap() -> None:
    width, camp = beyond(torch.ones(6))
    assert width > 1 and camp == [0, 1, 2, 3]


def test_a_trusted_client_above_a_gap_does_not_widen_it_for_its_neighbours() -> None:
    """Its head counts more than all others; clients 0, 1, 2 are trusted, too, and so the majority below the gap."""
    heads = torch.tensor([6.0, 6.0, 6.0, 1.0, 6.0, 1.0])
    assert beyond(heads) == beyond(torch.ones(6))


@pytest.mark.parametrize(
    ("pairs", "conspired"),
    [
        (((4, 5),), True),
        (((4, 0), (5, 0), (4, 1), (5, 1)), False),  # ballots 0 and 1 have copied both
    ],
)
def test_conspirators_agree_with_each_other(pairs: tuple[tuple[int, int], ...], conspired: bool) -> None:
    line = Line(PLACES, 0.05, lambda: agreement(*pairs))
    assert line.conspired(torch.tensor([0, 1, 2, 3])) == conspired
    assert Line(PLACES, 0.05).conspired(torch.tensor([0, 1, 2, 3])), "of work, not of agreement"


def test_one_ballot_alone_is_no_conspiracy() -> None:
    """An attacker can copy one honest client, which then agrees with others more than everybody else does."""
    line = Line(PLACES, 0.05, lambda: agreement((5, 0)))
    assert not line.conspired(torch.arange(5))


def test_a_decoy_above_conspirators_does_not_hide_them() -> None:
    """One ballot agrees with everybody most of all, alone; below it two agree with each other."""
    places = torch.tensor([0.0, 0.01, 0.02, 0.03, 0.04, 0.4, 0.4, 2.0], dtype=torch.float64)
    alike_KK = torch.full((8, 8), 0.02, dtype=torch.float64).fill_diagonal_(1)
    alike_KK[5, 6] = alike_KK[6, 5] = 0.6
    alike_KK[7, :7] = alike_KK[:7, 7] = 0.3
    camp = Camps().camp(iter([Line(places, 0.02, lambda: alike_KK)]), torch.ones(8).double(), 4.0, 3.0)
    assert camp is not None and sorted(camp.tolist()) == [0, 1, 2, 3, 4]
