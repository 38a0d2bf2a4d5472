"""A record has the documented keys, byte counts of real frames, and the accuracy of the rounds asked for."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch

from fedvote import FedAvg, FedVote, wire
from fedvote.engines.simulate import simulate, simulation
from fedvote.method import Method
from fedvote.methods import SignSGD
from fedvote.network.network import Network
from fedvote.randomness import SERVER
from fedvote.reputation import Cut, Proportional
from fedvote.rounds import Round
from fedvote.wire import Delivery, Outgoing
from tests.engines.simulated import assert_equal, simulated, timeless
from tests.toy import dataset, module

DOCUMENTED = {
    "round", "accuracy", "accuracy_float", "loss", "uplink_bytes", "downlink_bytes", "total_bytes",
    "uplink_bits_per_weight", "total_bits_per_weight", "seconds", "clients",
}  # fmt: skip


def test_every_record_has_the_documented_keys() -> None:
    for number, snapshot in enumerate(simulated(cohort=3).run(), start=1):
        record = snapshot.record
        assert record.keys() >= DOCUMENTED
        assert record["round"] == snapshot.round == number
        assert 0 <= record["accuracy"] <= 1 and 0 <= record["accuracy_float"] <= 1
        assert record["loss"] > 0 and record["seconds"] > 0


@pytest.mark.parametrize("method", [FedVote(), FedVote(votes="ternary", train_float=True), FedAvg()], ids=str)
def test_byte_counts_are_the_lengths_of_the_frames(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = 72 + (39 if getattr(method, "train_float", True) else 0)  # those that travel
    up: list[int] = []
    down: dict[bool, int] = {}  # to those who hold the last broadcast, and to the others
    before = set(range(5))  # all have made the first one of the seed

    def spy(outgoing: Outgoing) -> list[Delivery]:
        frames = wire.frames(outgoing)
        if outgoing.headers[0].client == SERVER:
            names = outgoing.codecs(SERVER)
            down[any(getattr(codec, "reference", None) is not None for codec in names.values())] = len(frames[0])
        else:
            up.extend(map(len, frames))
        return wire.write(outgoing)

    monkeypatch.setitem(simulation.CARRIERS, "written", spy)
    for snapshot in simulated(method, cohort=3, stack=2, wire="written").run():
        clients = snapshot.record["clients"]
        assert len(up) == 3 and down.keys() == {client in before for client in clients}
        assert snapshot.record["uplink_bytes"] == sum(up)
        assert snapshot.record["downlink_bytes"] == sum(down[client in before] for client in clients)
        before = set(clients) if method.wire(Network(module())).keeps_broadcast else set()
        assert snapshot.record["uplink_bits_per_weight"] == pytest.approx(8 * sum(up) / 3 / weights)
        up.clear()
        down.clear()


@pytest.mark.parametrize("method", [FedVote(levels=3, level_rounding="carry"), SignSGD()], ids=str)
def test_a_client_that_sent_nothing_is_sent_the_whole_and_is_not_in_the_mean(method: Method) -> None:
    data = dataset()
    data.train.x[7 * 8 :] = math.nan  # of all but the first client
    rows = [torch.arange(56), *torch.arange(56, 200).split(36)]
    run = simulate(module(), data, method, owned=rows, clients=5, rounds=3, steps=4, batch=8, device="cpu")
    snapshots = list(run.run())
    since = replace(snapshots[1], record=json.loads(json.dumps(snapshots[1].record)))  # as in a file
    assert timeless(next(run.run(since)).record) == timeless(snapshots[2].record)
    state, round = snapshots[1].state, Round(method, run.federation.network, run.federation.key(3))
    short, whole = (len(wire.frames(round.broadcast(state, held))[0]) for held in (round.reference(state), None))
    record, weights = snapshots[2].record, run.federation.weights_sent
    assert short < whole and record["downlink_bytes"] == short + 4 * whole
    assert record["uplink_bits_per_weight"] == 8 * record["uplink_bytes"] / weights


@pytest.mark.parametrize(("every", "judged"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])])
def test_only_the_rounds_asked_for_are_judged_and_the_last(every: int, judged: list[int]) -> None:
    snapshots = list(simulated(rounds=5, evaluate_every=every).run())
    assert [s.round for s in snapshots if "accuracy" in s.record] == judged
    assert all("uplink_bytes" in s.record for s in snapshots)
    assert_equal(snapshots[-1], list(simulated(rounds=5).run())[-1])


def test_the_record_says_whom_the_rule_left_out_and_why() -> None:
    run = simulated(FedVote(reputation=Cut()), attack="inverse", hostile=2)
    for snapshot in run.run():
        weights, out = snapshot.record["vote_weight"], snapshot.record.get("left_out", {})
        assert set(out) == {client for client, weight in weights.items() if not weight}
        assert set(out.values()) <= {"the reputation is below the mean"}
    assert set(out) == set(run.federation.hostile)
    assert all("left_out" not in snapshot.record for snapshot in simulated(attack="inverse", hostile=1).run())


def test_vote_weights_are_in_every_record_of_a_run_in_which_they_may_differ() -> None:
    first, *later = simulated(FedVote(reputation=Proportional()), cohort=3, rounds=3).run()
    assert len(set(first.record["vote_weight"].values())) == 1  # and yet they are there
    for snapshot in (first, *later):
        weights = snapshot.record["vote_weight"]
        assert list(weights) == snapshot.record["clients"] and sum(weights.values()) == pytest.approx(1)
    assert all("vote_weight" not in snapshot.record for snapshot in simulated().run())
    assert all("vote_weight" in snapshot.record for snapshot in simulated(attack="inverse", hostile=1).run())


def test_what_is_judged_by_follows_from_the_seed() -> None:
    one, same, other = (simulated(seed=seed, calibrate_on=16) for seed in (0, 0, 1))
    tests, calibrations = zip(
        *((each.test().x, each.calibration()) for each in (made.federation for made in (one, same, other))),
        strict=True,
    )
    for first, second, third in (tests, calibrations):
        assert torch.equal(first, second) and not torch.equal(first, third)
