"""The simulator: one seed, one result; stacks of any size; everybody's turn; honest byte counts; memory."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fedvote import ConfigError, DataError, FedAvg, FedVote, ModelError, Simulation, federation, wire
from fedvote.core import Batches, Message, State
from fedvote.data.batches import draw_batches
from fedvote.engines.simulate import simulate, simulation
from fedvote.federation import Federation, Snapshot
from fedvote.method import Merge, Method
from fedvote.methods import SignSGD, Signum, fedvote
from fedvote.network.network import Network
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import SERVER, Key
from fedvote.reputation import Proportional
from fedvote.rounds import Round
from fedvote.runs.checkpoint import load_snapshot, save_snapshot
from fedvote.wire import Delivery, Outgoing
from tests.toy import assert_close, assert_same, dataset, module

DOCUMENTED = {
    "round", "accuracy", "accuracy_float", "loss", "uplink_bytes", "downlink_bytes", "total_bytes",
    "uplink_bits_per_weight", "total_bits_per_weight", "seconds", "clients",
}  # fmt: skip


def simulated(method: Method | None = None, **options: Any) -> Simulation:
    chosen: dict[str, Any] = {"clients": 5, "rounds": 3, "steps": 4, "batch": 8, "device": "cpu"}
    return simulate(module(), dataset(), method, **chosen | {"start": "seed"} | options)


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not name.startswith("seconds")}


def assert_equal(a: Snapshot, b: Snapshot) -> None:
    assert a.round == b.round
    assert_same(a.state, b.state)
    assert_same(a.memory, b.memory)
    assert timeless(a.record) == timeless(b.record)


@pytest.mark.parametrize("method", [FedVote(), FedVote(reputation=Proportional()), FedAvg(by_samples=True)], ids=str)
def test_two_runs_with_one_seed_are_equal_to_the_bit(method: Method) -> None:
    first = list(simulated(method, cohort=3, seed=4).run())
    torch.manual_seed(99)
    second = list(simulated(method, cohort=3, seed=4).run())
    assert [snapshot.round for snapshot in first] == [1, 2, 3]
    for a, b in zip(first, second, strict=True):
        assert_equal(a, b)


def test_one_simulation_run_twice_gives_the_same() -> None:
    made = simulated()
    for a, b in zip(made.run(), made.run(), strict=True):
        assert_equal(a, b)


@pytest.mark.parametrize("method", [FedVote(), FedAvg()], ids=str)
def test_two_seeds_differ(method: Method) -> None:
    one, other = (list(simulated(method, seed=seed).run())[-1] for seed in (0, 1))
    key = "level" if "level" in one.state else "voted"
    assert not torch.equal(one.state[key], other.state[key])


class Watching(FedAvg):
    def local(self, *arguments: Any) -> tuple[Message, State]:
        assert torch.are_deterministic_algorithms_enabled() and not torch.is_grad_enabled()
        return super().local(*arguments)

    def merge(self, *arguments: Any) -> Merge:
        assert torch.are_deterministic_algorithms_enabled() and not torch.is_grad_enabled()
        return super().merge(*arguments)


@pytest.mark.parametrize("method", [FedAvg(), FedVote()], ids=str)
def test_runs_of_one_seed_may_share_a_network_and_others_may_not(method: Method) -> None:
    first, second = simulated(method, attack="inverse", hostile=2), simulated(method, steps=5)
    network = first.federation.placed()
    list(first.run(network=network))
    for shared, alone in zip(second.run(network=network), second.run(), strict=True):
        assert_same(shared.state, alone.state)
    with pytest.raises(ConfigError, match="other weights than this run, expected one of the same seed"):
        next(simulated(method, seed=1).run(network=network))


def test_deterministic_algorithms_are_on_only_while_a_round_runs() -> None:
    for _ in simulated(Watching(), rounds=2).run():
        assert not torch.are_deterministic_algorithms_enabled() and torch.is_grad_enabled()


VOTING = [FedVote(), FedVote(coding="plain"), FedVote(votes="ternary"), SignSGD(), Signum()]


@pytest.mark.parametrize("wire", ["weighed", "written"])
@pytest.mark.parametrize("method", VOTING, ids=str)
def test_a_client_whose_training_makes_no_numbers_has_no_vote(method: Method, wire: str) -> None:
    data = dataset()
    data.train.x[7 * 8 :] = math.nan  # of all but the first client
    rows = [torch.arange(56), *torch.arange(56, 200).split(36)]
    chosen: dict[str, Any] = {"clients": 5, "rounds": 2, "steps": 4, "batch": 8, "device": "cpu", "wire": wire}
    for snapshot in simulate(module(), data, method, owned=rows, **chosen).run():
        assert sorted(snapshot.record["refused"]) == [1, 2, 3, 4]
        assert snapshot.record["uplink_bytes"] > 0
        for values in (*snapshot.state.values(), *snapshot.memory.values()):
            assert values.isfinite().all()


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
    assert short < whole and snapshots[2].record["downlink_bytes"] == short + 4 * whole
    assert snapshots[2].record["uplink_bits_per_weight"] == 8 * snapshots[2].record["uplink_bytes"] / (
        run.federation.weights_sent
    )


@pytest.mark.parametrize(
    ("rows", "error", "saying"),
    [
        (torch.arange(400), ConfigError, "client 1 examples 0 to 399, expected 0 to 199"),
        (torch.tensor([-1, 3]), ConfigError, "client 1 examples -1 to 3"),
        (torch.arange(0), DataError, "client 1 has no training examples"),
    ],
)
def test_what_clients_own_is_checked(rows: Tensor, error: type[Exception], saying: str) -> None:
    with pytest.raises(error, match=saying):
        next(simulated(clients=2, owned=[torch.arange(40), rows]).run())


@pytest.mark.parametrize("stack", [1, 2, 3, 99])
def test_stacks_of_any_size_train_the_same_float_weights(stack: int) -> None:
    for a, b in zip(simulated(FedAvg(lr=0.01)).run(), simulated(FedAvg(lr=0.01), stack=stack).run(), strict=True):
        assert_close(a.state, b.state)
        assert a.record["clients"] == b.record["clients"] and a.record["uplink_bytes"] == b.record["uplink_bytes"]


@pytest.mark.parametrize("stack", [1, 2, 3])
def test_stacks_of_any_size_train_the_same_latent_weights(stack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients round is the same to rounding error, and so they cast the same votes."""

    def normalised(size: int) -> tuple[Tensor, Tensor]:
        seen: list[Tensor] = []
        voted: list[Tensor] = []

        def spy(w_KD: Tensor, *rest: Any) -> Tensor:
            seen.append(w_KD)
            voted.append(round_by_shared_random(w_KD, *rest))
            return voted[-1]

        with monkeypatch.context() as patch:
            patch.setattr(fedvote, "round_by_shared_random", spy)
            (_,) = simulated(stack=size, rounds=1, steps=10).run()
        return torch.cat(seen), torch.cat(voted)

    (whole_KD, votes_KD), (parts_KD, parts_votes_KD) = normalised(0), normalised(stack)
    assert whole_KD.shape == (5, 72)
    torch.testing.assert_close(parts_KD, whole_KD, rtol=1e-3, atol=1e-4)
    assert torch.equal(parts_votes_KD, votes_KD)


@pytest.mark.parametrize("options", [{}, {"epochs": 0.7}, {"hostile": 2, "oracle": True}, {"stack": 1}], ids=str)
def test_what_is_drawn_a_round_ahead_is_what_the_round_would_draw(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = simulated(FedAvg(), cohort=3, **options)
    drawn: list[tuple[int, int]] = []

    def spy(train: Any, owned: Any, steps: Any, batch: int, keys: Sequence[Key], orders: Any) -> Batches:
        own, ahead = (draw_batches(train, owned, steps, batch, keys, given) for given in (None, orders))
        assert len(orders) == len(keys) and torch.equal(own.index_KSB, ahead.index_KSB)
        drawn.extend((key.round, key.client) for key in keys)
        return ahead

    monkeypatch.setattr(federation, "draw_batches", spy)
    cohorts = [snapshot.record["clients"] for snapshot in made.run()]
    assert drawn == [(round, client) for round, cohort in enumerate(cohorts, 1) for client in cohort]


def test_nothing_is_drawn_twice_or_for_a_round_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    orders = Federation.orders

    def spy(self: Federation, round: int) -> Any:
        rounds.append(round)
        return orders(self, round)

    monkeypatch.setattr(Federation, "orders", spy)
    made = simulated(FedAvg(), cohort=3, stack=1)
    first, *_ = made.run()
    assert rounds == [1, 2, 3]
    list(made.run(first))
    assert rounds == [1, 2, 3, 2, 3]


def test_a_cohort_is_drawn_by_seed_and_round_and_everybody_is_drawn_sooner_or_later() -> None:
    cohorts = [s.record["clients"] for s in simulated(FedAvg(), cohort=2, rounds=30, steps=1).run()]
    for cohort in cohorts:
        assert len(set(cohort)) == 2 and cohort == sorted(cohort)
    counts = Counter(client for cohort in cohorts for client in cohort)
    assert counts.keys() == {0, 1, 2, 3, 4} and min(counts.values()) >= 4  # of 12 on average

    again = [s.record["clients"] for s in simulated(FedVote(), cohort=2, rounds=3, steps=2, stack=1).run()]
    assert again == cohorts[:3], "what clients do has no part in who is drawn"
    other = [s.record["clients"] for s in simulated(FedVote(), cohort=2, rounds=30, steps=1, seed=1).run()]
    assert other != cohorts


def test_without_a_cohort_everybody_takes_part() -> None:
    assert [s.record["clients"] for s in simulated(rounds=2).run()] == [[0, 1, 2, 3, 4]] * 2


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


@pytest.mark.parametrize(("every", "judged"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (5, [5]), (9, [5])])
def test_only_the_rounds_asked_for_are_judged_and_the_last(every: int, judged: list[int]) -> None:
    snapshots = list(simulated(rounds=5, evaluate_every=every).run())
    assert [s.round for s in snapshots if "accuracy" in s.record] == judged
    assert all("uplink_bytes" in s.record for s in snapshots)
    assert_equal(snapshots[-1], list(simulated(rounds=5).run())[-1])


def test_vote_weights_are_in_every_record_of_a_run_in_which_they_may_differ() -> None:
    first, *later = simulated(FedVote(reputation=Proportional()), cohort=3, rounds=3).run()
    assert len(set(first.record["vote_weight"].values())) == 1  # and yet they are there
    for snapshot in (first, *later):
        weights = snapshot.record["vote_weight"]
        assert list(weights) == snapshot.record["clients"] and sum(weights.values()) == pytest.approx(1)
    assert all("vote_weight" not in snapshot.record for snapshot in simulated().run())
    assert all("vote_weight" in snapshot.record for snapshot in simulated(attack="inverse", hostile=1).run())


def test_training_teaches_something() -> None:
    last = list(simulated(FedVote(train_float=True, float_lr=0.003), rounds=4, steps=25).run())[-1]
    assert last.record["accuracy"] > 0.7 and last.record["accuracy_float"] > 0.7


def test_the_deployed_module_holds_votes_and_judges_one_input_at_a_time() -> None:
    made = simulated(rounds=4, steps=25)
    last = list(made.run())[-1]
    deployed = made.deployed(last)
    assert isinstance(deployed[0], nn.Linear)  # type: ignore[index]
    assert set(deployed[0].weight.flatten().tolist()) == {-1.0, 1.0}  # type: ignore[index]
    data = dataset().test
    right = sum(int(deployed(data.x[i : i + 1]).argmax() == data.y[i]) for i in range(len(data)))
    assert right / len(data) == pytest.approx(last.record["accuracy_calibrated"])


@dataclass(frozen=True)
class Counting(FedAvg):
    """FedAvg whose clients remember how often they took part, and in which round last."""

    def memory(self, network: Network) -> State:
        return {"times": torch.zeros(1, dtype=torch.int64), "last": torch.tensor(-1)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        up, _ = super().local(network, down, batches, memory, keys)
        return up, {"times": memory["times"] + 1, "last": torch.tensor([key.round for key in keys])}


@pytest.mark.parametrize("stack", [0, 2])
def test_clients_remember_through_partial_participation(stack: int) -> None:
    times, last = [0] * 5, [-1] * 5
    made = simulated(Counting(), cohort=3, rounds=6, steps=1, stack=stack)
    assert made.federation.start().memory["times"].tolist() == [[0]] * 5
    for snapshot in made.run():
        for client in snapshot.record["clients"]:
            times[client] += 1
            last[client] = snapshot.round
        assert snapshot.memory["times"][:, 0].tolist() == times
        assert snapshot.memory["last"].tolist() == last
    assert len(set(times)) > 1


@pytest.mark.parametrize(
    "method", [Counting(), FedVote(reputation=Proportional(), train_float=True)], ids=["counting", "fedvote"]
)
@pytest.mark.parametrize("at", [1, 3])
def test_a_run_goes_on_from_any_snapshot_on_disk_to_the_same_bits(method: Method, at: int, tmp_path: Path) -> None:
    whole = list(simulated(method, cohort=3, rounds=5).run())
    save_snapshot(tmp_path / "at", whole[at - 1])
    rest = list(simulated(method, cohort=3, rounds=5).run(load_snapshot(tmp_path / "at")))
    assert [snapshot.round for snapshot in rest] == list(range(at + 1, 6))
    for a, b in zip(rest, whole[at:], strict=True):
        assert_equal(a, b)


def test_a_run_changes_no_snapshot_it_has_given_out() -> None:
    made = simulated(Counting(), cohort=3, rounds=4, steps=1)
    given: list[tuple[Snapshot, State, State]] = []
    for snapshot in made.run():
        state, memory = ({n: v.clone() for n, v in part.items()} for part in (snapshot.state, snapshot.memory))
        given.append((snapshot, state, memory))
    for snapshot, state, memory in given:
        assert_same(snapshot.state, state)
        assert_same(snapshot.memory, memory)


def test_nothing_is_left_to_run_after_the_last_round() -> None:
    made = simulated(rounds=2)
    last = list(made.run())[-1]
    assert list(made.run(last)) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rounds": 0}, "rounds is 0, expected a whole number above 0"),
        ({"steps": 0}, "steps is 0, expected"),
        ({"batch": -1}, "batch is -1, expected"),
        ({"clients": 0}, "clients is 0, expected"),
        ({"test_batch": 0}, "test_batch is 0, expected"),
        ({"calibrate_on": 0}, "calibrate_on is 0, expected"),
        ({"cohort": 6}, "cohort is 6, expected 0 (everybody) to 5"),
        ({"cohort": -1}, "cohort is -1, expected 0 (everybody) to 5"),
        ({"stack": -1}, "stack is -1, expected 0"),
        ({"device": "gpu"}, "device is 'gpu', expected auto, cpu or cuda"),
        ({"precision": "float64"}, "precision is 'float64', expected one of: auto, float32, bfloat16"),
        ({"precision": "bfloat16"}, "use auto or float32"),
    ],
    ids=str,
)
def test_a_federation_that_cannot_run_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        simulated(**options)


def test_a_client_with_less_than_a_batch_is_refused() -> None:
    with pytest.raises(DataError, match="a batch is 41"):
        simulated(batch=41)


def test_a_module_that_does_not_fit_the_data_is_refused() -> None:
    with pytest.raises(ModelError, match=re.escape("the data has 3 classes: expected (3,)")):
        simulate(nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2)), dataset(), clients=2, rounds=1, batch=8)


def test_epochs_are_passes_over_a_clients_own_examples() -> None:
    uneven = [torch.arange(a, b) for a, b in ((0, 8), (8, 40), (40, 80), (80, 84), (84, 200))]
    made = simulated(FedAvg(), epochs=2.0, owned=uneven)
    assert made.federation.steps([len(rows) for rows in made.federation.owned]) == [2, 8, 10, 1, 29]
    assert made.federation.steps([10, 11, 1]) == [2, 3, 1]  # of 2.5, 2.75 and 0.25 batches of 8
    alone = simulated(FedAvg(), epochs=2.0, owned=uneven, stack=1)
    for a, b in zip(made.run(), alone.run(), strict=True):
        assert_close(a.state, b.state)
    by_steps = next(simulated(FedAvg(), owned=uneven).run())
    assert not torch.equal(by_steps.state["voted"], next(made.run()).state["voted"])


def test_what_is_judged_by_follows_from_the_seed() -> None:
    one, same, other = (simulated(seed=seed, calibrate_on=16) for seed in (0, 0, 1))
    tests, calibrations = zip(
        *((each.test().x, each.calibration()) for each in (made.federation for made in (one, same, other))),
        strict=True,
    )
    for first, second, third in (tests, calibrations):
        assert torch.equal(first, second) and not torch.equal(first, third)


@pytest.mark.parametrize("epochs", [-1.0, float("inf"), float("nan")])
def test_epochs_that_are_none_are_refused(epochs: float) -> None:
    with pytest.raises(ConfigError, match="epochs is"):
        simulated(epochs=epochs)
