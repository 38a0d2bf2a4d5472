"""When a round closes: the numbers that a configuration may have, and what they mean for a cohort."""

from __future__ import annotations

import pytest

from fedvote.codecs import Parcel
from fedvote.config import FlowerConfig
from fedvote.core import ConfigError
from fedvote.engines.flower.poll import Poll


def poll(cohort: int, ballots: int, **rules: float) -> Poll:
    ballot = Parcel({}, 0, [0])
    return Poll(
        1, range(cohort), FlowerConfig(**rules), lambda frame, client: ballot, dict.fromkeys(range(ballots), ballot)
    )


@pytest.mark.parametrize(
    ("share", "cohort", "expected"), [(0.5, 5, 3), (0.5, 4, 2), (0.6, 5, 3), (0.7, 10, 7), (1.0, 3, 3), (0.01, 3, 1)]
)
def test_a_share_of_the_cohort_is_rounded_up_and_no_further(share: float, cohort: int, expected: int) -> None:
    assert poll(cohort, 0, minimum=share).least == expected
    assert poll(cohort, 0, minimum=share, quorum=share).need == expected


@pytest.mark.parametrize(
    ("ballots", "waited", "awaited", "closes", "stuck"),
    [
        (4, 0, {4}, True, False),  # the quorum
        (3, 0, {3, 4}, False, False),
        (3, 9, {3, 4}, False, False),
        (3, 10, {3, 4}, True, False),  # the deadline
        (3, 0, set(), True, False),  # nobody is left to wait for
        (2, 10, {2, 3, 4}, False, True),  # below the minimum
        (2, 0, set(), False, True),
        (2, 0, {2}, False, False),
    ],
)
def test_when_a_round_closes(ballots: int, waited: float, awaited: set[int], closes: bool, stuck: bool) -> None:
    made = poll(5, ballots, quorum=0.8, minimum=0.6, deadline=10)
    assert (made.closes(waited, awaited), made.stuck(waited, awaited)) == (closes, stuck)


@pytest.mark.parametrize(
    "rules",
    [
        {"quorum": 0.4, "minimum": 0.5},
        {"quorum": 1.1},
        {"minimum": 0.0},
        {"deadline": 10.0, "patience": 5.0},
        {"poll": 0.0},
        {"deadline": float("nan")},
    ],
    ids=str,
)
def test_numbers_that_make_no_sense_are_refused(rules: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        FlowerConfig(**rules)
