"""fedvote as a library: a user's own network and own arrays, and about ten lines to a trained binary network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedvote
from fedvote.attacks import Inverse
from fedvote.core import State
from fedvote.plan import Plan
from fedvote.quantize import Erf
from fedvote.reputation import Ballots, Camps, Reputation, Verdict
from fedvote.runs.toml_tables import build
from tests.toy import Federation, dataset, module


def test_ten_lines_from_arrays_to_a_binary_network() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    x = rng.normal(size=(3, 20))[y] + rng.normal(size=(600, 20))

    data = fedvote.from_arrays(x[:500], y[:500], x[500:], y[500:])
    module = nn.Sequential(nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    sim = fedvote.simulate(module, data, fedvote.FedVote(), clients=5, rounds=4, steps=20, batch=32)
    for snapshot in sim.run():
        print(snapshot.record["round"], snapshot.record["accuracy"])
    network = sim.deployed(snapshot)

    assert snapshot.round == 4 and snapshot.record["accuracy"] > 0.8
    assert not network.training and isinstance(network.network, nn.Sequential)
    assert isinstance(network.network[0], nn.Linear)
    assert set(network.network[0].weight.unique().tolist()) == {-1.0, 1.0}
    inputs = torch.from_numpy(x[500:]).float()
    right = float((network(inputs).argmax(1).numpy() == y[500:]).mean())
    assert right == snapshot.record["accuracy_calibrated"]


def test_a_module_that_was_given_stays_as_it_was() -> None:
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    data = fedvote.from_arrays(x, y, x, y)
    sim = fedvote.simulate(module, data, fedvote.FedAvg(), clients=2, rounds=1, steps=2, batch=8)
    (last,) = sim.run()
    sim.deployed(last)
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("wrong", [{"clients": "3"}, {"clients": 3.0}, {"method": 3}, {"method": fedvote.FedAvg}])
def test_what_is_of_the_wrong_kind_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(fedvote.ConfigError, match="expected a"):
        fedvote.simulate(module(), dataset(), **{"clients": 5, "rounds": 1, **wrong})
    with pytest.raises(fedvote.ConfigError, match="expected a Dataset, such as"):
        fedvote.simulate(module(), (1, 2), clients=5, rounds=1)  # type: ignore[arg-type]
    for network in (None, nn.Linear):
        with pytest.raises(fedvote.ConfigError, match="expected a Module, such as"):
            fedvote.simulate(network, dataset(), clients=5, rounds=1)  # type: ignore[arg-type]
    with pytest.raises(fedvote.ConfigError, match=r"lr is '0\.1', expected a number"):
        fedvote.FedVote(lr="0.1")  # type: ignore[arg-type]


def test_users_own_convolutions_and_torch_datasets_work_too() -> None:
    x, y = torch.rand(80, 1, 8, 8, generator=torch.Generator().manual_seed(0)), torch.arange(80) % 2
    x[y == 1, :, :4] += 1
    whole = torch.utils.data.TensorDataset(x, y)
    data = fedvote.from_torch(whole, whole)
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    method = fedvote.FedVote(votes="ternary", train_float=True)
    sim = fedvote.simulate(module, data, method, clients=4, rounds=3, steps=15, batch=16)
    *_, last = sim.run()
    weights = sim.deployed(last).get_parameter("network.0.weight")
    assert set(weights.unique().tolist()) <= {-1.0, 0.0, 1.0}
    assert last.record["accuracy_float"] > 0.8


def test_everything_named_in_the_package_is_there() -> None:
    for name in fedvote.__all__:
        assert hasattr(fedvote, name)
    assert issubclass(fedvote.ConfigError, fedvote.FedVoteError)


def test_parts_go_by_their_names() -> None:
    method = fedvote.FedVote(reputation="camps", normalisation="erf")  # type: ignore[arg-type]
    assert method == fedvote.FedVote(reputation=Camps(), normalisation=Erf())
    made = fedvote.simulate(
        module(), dataset(), method, clients=5, rounds=1, batch=8, partition="iid", attack="inverse", hostile=2
    )
    assert (made.federation.method, made.federation.plan.attack) == (method, Inverse())
    with pytest.raises(fedvote.ConfigError, match=r"reputation .camp. is not known; known: .*camps"):
        fedvote.FedVote(reputation="camp")  # type: ignore[arg-type]


@pytest.mark.parametrize(("weights", "saying"), [([-1.0] * 5, "adds up to -5,"), ([1.0] * 4, r"shape \(4,\)")])
def test_a_rule_that_leaves_no_votes_to_count_is_named(weights: list[float], saying: str) -> None:
    class Mine(Reputation):
        def judge(self, memory: State, ballots: Ballots, key: fedvote.Key) -> Verdict:
            return Verdict(torch.tensor(weights), torch.tensor(weights), memory)

    with pytest.raises(fedvote.ConfigError, match=f"Mine.*{saying}"):
        Federation(fedvote.FedVote(reputation=Mine())).states([range(5)])


@pytest.mark.parametrize(
    ("part", "table", "module", "made"),
    [
        ("partition", {"name": "dirichlet", "alpha": 0.1}, "fedvote.data.partition", "Dirichlet(alpha=0.1)"),
        ("attack", {"name": "inverse"}, "fedvote.attacks", "Inverse()"),
        ("loss", {"name": "huber", "delta": 2.0}, "fedvote.tasks.losses", "Huber(delta=2.0)"),
    ],
)
def test_a_table_in_a_program_is_told_what_to_import(part: str, table: dict[str, Any], module: str, made: str) -> None:
    with pytest.raises(fedvote.ConfigError) as refusal:
        Plan.of(**{part: table})
    code, names = f"from {module} import {made.partition('(')[0]}", dict[str, Any]()
    exec(code, names)
    assert str(refusal.value).endswith(f"; in a program, `{code}`, and give {made}")
    assert getattr(Plan.of(**{part: eval(made, names)}), part) == getattr(build(Plan, {part: table}), part)


def test_a_setting_of_the_method_is_refused_by_saying_where_it_belongs() -> None:
    for method, words in ((None, "not of the run: use FedVote"), (fedvote.FedAvg(), "use FedAvg")):
        with pytest.raises(fedvote.ConfigError, match=rf"lr is a setting of the method, .*{words}\(lr=...\)"):
            fedvote.simulate(module(), dataset(), method, clients=5, lr=0.1)
    with pytest.raises(fedvote.ConfigError, match=r"learning_rate is a setting of the method, .* FedVote\(lr=...\)"):
        fedvote.simulate(module(), dataset(), clients=5, learning_rate=0.1)
    with pytest.raises(fedvote.ConfigError, match=r"no setting batch_size; .*; did you mean batch\?"):
        fedvote.simulate(module(), dataset(), clients=5, batch_size=8)


@pytest.mark.parametrize(
    ("knob", "value"),
    [("cohort", 1.5), ("cohort", True), ("hostile", "2"), ("stack", 1.5), ("epochs", "x"), ("seed", "a"), ("seed", 1.5),
     ("seed", None), ("oracle", "no"), ("compile", 1), ("attack", 3), ("partition", 3), ("steps", 0)],
)  # fmt: skip
def test_a_value_of_another_type_than_its_knob_is_refused_by_name(knob: str, value: object) -> None:
    with pytest.raises(fedvote.ConfigError, match=rf"{knob} is {value!r}, expected "):
        fedvote.simulate(module(), dataset(), clients=5, rounds=1, batch=8, **{knob: value})  # type: ignore[arg-type]


def test_numbers_of_numpy_and_lists_of_rows_are_taken() -> None:
    plain: dict[str, Any] = {"steps": 3, "seed": 4, "cohort": 2, "epochs": 0.0}
    rows: Any = [list(range(40 * client, 40 * client + 40)) for client in range(5)]
    lasts = []
    for knobs in (plain, {name: np.array(value)[()] for name, value in plain.items()}):
        *_, last = fedvote.simulate(module(), dataset(), clients=5, rounds=2, batch=8, owned=rows, **knobs)
        lasts.append(last.record["loss"])
    assert lasts[0] == lasts[1]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (None, 'start is None, expected "given", "seed", a file of weights, or module.state_dict'),
        ([1, 2], 'start is a list, expected "given", "seed"'),
        ({}, "start is {}, expected"),
        ({"0.weight": "w.pt"}, "start has a str as '0.weight', expected tensors by name"),
    ],
)
def test_what_is_no_start_is_one_sentence(start: Any, words: str) -> None:
    with pytest.raises(fedvote.ConfigError, match=words):
        fedvote.simulate(module(), dataset(), start=start, clients=5, batch=8)


def test_a_module_and_a_dict_of_arrays_start_as_their_state_dict() -> None:
    other = module()
    with torch.no_grad():
        other[0].weight.neg_()  # type: ignore[index]
    weights = other.state_dict()
    starts = (weights, other, {name: value.numpy() for name, value in weights.items()})
    runs = [fedvote.simulate(module(), dataset(), start=each, clients=5, batch=8) for each in starts]
    begun = [run.federation.network.start.voted for run in runs]
    assert torch.equal(begun[0], other[0].weight.flatten())  # type: ignore[index]
    assert torch.equal(begun[1], begun[0]) and torch.equal(begun[2], begun[0])


def test_a_simulation_shows_its_network_and_says_what_it_was_given_wrongly(tmp_path: Path) -> None:
    run = fedvote.simulate(module(), dataset(), clients=5, batch=8)
    assert str(run.summary()) == str(run.federation.summary())
    with pytest.raises(fedvote.ConfigError, match="got an int, expected a Snapshot: a run yields one every round"):
        run.deployed(3)  # type: ignore[arg-type]
    with pytest.raises(fedvote.ConfigError, match=r"^got a Simulation, expected a Federation: give run.federation$"):
        fedvote.save_network(tmp_path, run, run.federation.start())  # type: ignore[arg-type]
