"""The simulator: one seed, one result; it goes on from any snapshot to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from fedvote import ConfigError, FedAvg, FedVote
from fedvote.core import Message, State
from fedvote.method import Merge, Method
from fedvote.reputation import Proportional
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.checkpoint import load_snapshot, save_snapshot
from tests.engines.simulated import Counting, assert_equal, simulated
from tests.toy import assert_same, dataset


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


def test_training_teaches_something() -> None:
    last = list(simulated(FedVote(train_float=True, float_lr=0.003), rounds=4, steps=25).run())[-1]
    assert last.record["accuracy"] > 0.7 and last.record["accuracy_float"] > 0.7


def test_the_deployed_module_holds_votes_and_judges_one_input_at_a_time() -> None:
    made = simulated(rounds=4, steps=25)
    last = list(made.run())[-1]
    deployed = made.deployed(last)
    assert isinstance(deployed.get_submodule("network.0"), nn.Linear)
    assert set(deployed.get_parameter("network.0.weight").flatten().tolist()) == {-1.0, 1.0}
    data = dataset().test
    right = sum(int(deployed(data.x[i : i + 1]).argmax() == data.y[i]) for i in range(len(data)))
    assert right / len(data) == pytest.approx(last.record["accuracy_calibrated"])


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


def test_a_second_loop_starts_again_and_run_continues() -> None:
    made = simulated(FedVote(), rounds=3)
    for left in made:
        if left.round == 2:
            break
    again, (rest,) = list(made), made.run(left)
    assert [snapshot.round for snapshot in again] == [1, 2, 3] and rest.round == 3
    for a, b in ((again[1], left), (again[2], rest)):
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
