"""When a round closes: the numbers that a configuration may have, and what they mean for a cohort."""

from __future__ import annotations

import pytest

from fedvote.engines.flower.mailbox import Reply, Request
from fedvote.engines.flower.poll import TRIES, Poll
from fedvote.engines.flower.replies import Ballot, Failure
from fedvote.errors import ConfigError
from fedvote.plan import FlowerOptions


def poll(cohort: int, ballots: int, **rules: float) -> Poll:
    return Poll(
        1, range(cohort), FlowerOptions(late_rounds=0, **rules), lambda frame, client: None, set(range(ballots))
    )


@pytest.mark.parametrize(
    ("share", "cohort", "expected"), [(0.5, 5, 3), (0.5, 4, 2), (0.6, 5, 3), (0.7, 10, 7), (1.0, 3, 3), (0.01, 3, 1)]
)
def test_a_share_of_the_cohort_is_rounded_up_and_no_further(share: float, cohort: int, expected: int) -> None:
    assert poll(cohort, 0, minimum=share).minimum == expected
    assert poll(cohort, 0, minimum=share, quorum=share).quorum == expected


@pytest.mark.parametrize(
    ("ballots", "waited", "awaited", "closes", "lacks_minimum"),
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
def test_when_a_round_closes(ballots: int, waited: float, awaited: set[int], closes: bool, lacks_minimum: bool) -> None:
    made = poll(5, ballots, quorum=0.8, minimum=0.6, deadline=10)
    assert (made.closes(waited, awaited), made.lacks_minimum(waited, awaited)) == (closes, lacks_minimum)


def test_the_first_ballot_counts_whoever_was_asked_twice() -> None:
    cast: list[bytes] = []
    made = Poll(1, range(3), FlowerOptions(), lambda frame, client: cast.append(frame))
    first, second = (Reply(Request(1, 0), Ballot(frame)) for frame in (b"first", b"the second"))
    assert made.take(first) and not made.take(second)
    assert cast == [b"first"] and made.ballots == {0} and made.second == {0: 1}


@pytest.mark.parametrize(("refused", "lost"), [(1, False), (2, False), (3, True)])
def test_a_round_is_lost_when_too_few_are_left_and_not_before(refused: int, lost: bool) -> None:
    made = poll(5, 0, minimum=0.6)
    made.refused = {client: "no ballot" for client in range(refused)}
    assert made.cannot_reach_minimum() == lost


def test_whoever_keeps_failing_is_asked_so_often_until_each_deadline() -> None:
    made = poll(3, 0, deadline=10)
    for deadline in range(1, 4):
        for failure in range(1, TRIES + 1):
            made.take(Reply(Request(1, 0), Failure("it died", True)), retry=True)
            assert (0 in made.askable()) == (failure < TRIES)
        made.retry_after_deadline(10.0 * deadline)
        assert 0 in made.askable()


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
        FlowerOptions(late_rounds=0, **rules)
