"""A server that keeps earlier broadcasts sends clients that missed rounds only what changed since theirs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fedvote import FedVote, Simulation
from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.methods import METHODS
from fedvote.rounds import Round, held
from fedvote.rounds.snapshot import Snapshot
from fedvote.wire import frames
from tests.engines.simulated import assert_equal, simulated, timeless
from tests.toy import assert_same

FEW = FedVote(levels=3, level_rounding="carry", counts="changes")
BYTES = ("downlink", "total")


def sampled(method: Method, kept: int, **options: Any) -> Simulation:
    return simulated(method, cohort=2, rounds=7, kept_broadcasts=kept, **options)


def learned(snapshot: Snapshot) -> dict[str, Any]:
    return {name: value for name, value in timeless(snapshot.record).items() if not name.startswith(BYTES)}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_the_same_however_many_broadcasts_are_kept(name: str) -> None:
    method: Method = METHODS[name]()
    written = list(sampled(method, 4, wire="written").run())
    for a, b, c in zip(sampled(method, 1).run(), sampled(method, 4).run(), written, strict=True):
        assert_same(held.without_held(a.state), held.without_held(b.state))
        assert learned(a) == learned(b)
        assert_equal(b, c)  # bytes that are counted are those that are written


def test_clients_that_missed_rounds_are_sent_fewer_bytes() -> None:
    downlink = [sum(s.record["downlink_bytes"] for s in sampled(FEW, kept).run()) for kept in (1, 2, 7)]
    assert downlink[0] > downlink[1] > downlink[2]


def test_every_client_is_sent_the_change_since_its_own_broadcast_or_the_whole_if_that_is_shorter() -> None:
    run = sampled(FEW, 7)
    last: dict[int, int] = {}
    before = run.federation.start()
    for snapshot in run.run():
        round = Round(run.federation.method, run.federation.network, run.federation.key(snapshot.round), kept=7)
        expected = 0
        for client in snapshot.record["clients"] if snapshot.round > 1 else ():
            references = [None] if client not in last else [round.reference(before.state, last[client])]
            if last.get(client) != snapshot.round - 1:
                references.append(None)
            expected += min(len(frames(round.broadcast(before.state, each))[0]) for each in references)
        assert snapshot.round == 1 or snapshot.record["downlink_bytes"] == expected
        last |= dict.fromkeys(snapshot.record["clients"], snapshot.round)
        before = snapshot


def test_a_resumed_run_knows_which_broadcast_each_client_has() -> None:
    run = sampled(FEW, 7)
    snapshots = list(run.run())
    since = replace(snapshots[3], record=json.loads(json.dumps(snapshots[3].record)))  # as in a file
    for a, b in zip(snapshots[4:], run.run(since), strict=True):
        assert_equal(a, b)


@pytest.mark.parametrize("kept", [0, -1, 1.5, True])
def test_a_number_that_cannot_be_kept_is_refused(kept: Any) -> None:
    with pytest.raises(ConfigError, match=r"kept_broadcasts is .*, expected (a whole number|1 or more)"):
        sampled(FEW, kept)
