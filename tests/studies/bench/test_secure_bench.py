"""The benchmark of a secure tally: a row for each graph, with bytes that are those of real messages."""

from __future__ import annotations

import torch

from fedvote.randomness import Key
from fedvote.secure.in_process import key_pair, seeded, tally
from fedvote.studies.bench.secure import _session, bench


def test_small_cohorts_have_one_row_and_large_ones_all_pairs_and_the_graph() -> None:
    rows = bench(clients=[5, 104], weights=64)
    assert [(row["clients"], row["neighbours"], row["of_each"]) for row in rows] == [
        (5, "all pairs", 4),
        (104, "all pairs", 103),
        (104, "graph", 78),
    ]
    assert all(row["client_seconds"] > 0 and row["server_seconds_third_lost"] > 0 for row in rows)


def test_bits_are_those_of_a_tally_that_was_made() -> None:
    session = _session(5, 0, 800)
    votes_KD = torch.randint(0, 2, (5, 800), generator=Key(0).torch("votes"))
    _, sent = tally(
        session,
        list(enumerate(votes_KD)),
        {client: key_pair(0, client) for client in range(5)},
        lambda client: seeded(Key(0, 1, client), "shares"),
    )
    (row,) = bench(clients=[5], weights=800)
    assert row["bits_up"] == 8 * sent.up / (5 * 800) and row["bits_down"] == 8 * sent.down / (5 * 800)
