"""The graph: symmetric, regular, connected, random; and as many neighbours as a stated chance of failure needs."""

from __future__ import annotations

import pytest

from fedvote.secure.neighbours import (
    LEAK,
    LOST_ROUND,
    _at_least,
    default_degree,
    failure,
    graph,
    threshold_of,
)
from fedvote.secure.session import Session, Terms


@pytest.mark.parametrize(("clients", "k"), [(5, 4), (5, 99), (12, 4), (101, 10)])
def test_neighbours_are_mutual_and_equally_many(clients: int, k: int) -> None:
    cohort = [3 * client for client in range(clients)]
    found = graph(cohort, k, b"a session")
    assert list(sorted(found)) == cohort
    for client, others in found.items():
        assert len(others) == min(k, clients - 1) and client not in others and others == sorted(set(others))
        assert all(client in found[other] for other in others)


def test_a_graph_is_connected_and_differs_by_session() -> None:
    found = graph(range(50), 4, b"one")
    reached, waiting = set(), [0]
    while waiting:
        client = waiting.pop()
        if client not in reached:
            reached.add(client)
            waiting += found[client]
    assert len(reached) == 50
    assert graph(range(50), 4, b"other") != found


def test_the_chance_of_marked_ones_is_hypergeometric() -> None:
    """Of 4, 2 marked, 2 drawn: 1/6 both, 4/6 one, 1/6 none."""
    assert [_at_least(4, 2, 2, least) for least in range(4)] == pytest.approx([1, 5 / 6, 1 / 6, 0])


@pytest.mark.parametrize("clients", [101, 300, 1000])
def test_the_default_graph_fails_rarely_and_a_smaller_one_too_often(clients: int) -> None:
    k = default_degree(clients)
    leak, lost = failure(clients, k)
    assert leak <= LEAK and lost <= LOST_ROUND
    leak, lost = failure(clients, k - 2)
    assert leak > LEAK or lost > LOST_ROUND


def test_up_to_a_hundred_clients_are_all_neighbours_and_more_have_fewer() -> None:
    assert [default_degree(clients) for clients in (2, 31, 100)] == [1, 30, 99]
    assert default_degree(1000) < 150


@pytest.mark.parametrize("clients", range(4, 40))
def test_a_third_of_all_pairs_may_vanish(clients: int) -> None:
    """A voter that is here has one helper fewer among those that are left: itself. No client more may vanish."""
    session = Session(Terms("a run", 1), 1, bytes(16), tuple(range(clients)))
    left = clients - clients // 3
    assert session.threshold == left - 1 and session.fewest == max(3, left)


def test_one_share_alone_is_never_enough() -> None:
    """Of three clients nobody may vanish after its ballot: otherwise each would have both others' seeds."""
    assert Session(Terms("a run", 1), 1, bytes(16), (0, 1, 2)).threshold == 2
    assert threshold_of(10, 0.01) == 2 and threshold_of(1, 0.01) == 1
