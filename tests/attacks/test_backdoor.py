"""A backdoor: triggers in the hostile clients' own examples, and networks that answer them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedvote import from_arrays
from fedvote.attacks import Backdoor
from fedvote.core import Dataset, Examples
from fedvote.engines.simulate import Simulation, simulate
from fedvote.errors import ConfigError
from fedvote.federation import Federation
from fedvote.method import Method
from fedvote.methods import FedAvg, FedVote
from fedvote.plan import Plan
from fedvote.randomness import Key
from fedvote.runs.config import read
from fedvote.runs.experiment import federation as planned
from tests import toy

KEY = Key(3, 0, 1)


def grey(n: int = 8, shape: tuple[int, ...] = (1, 3, 3), dtype: torch.dtype = torch.uint8, **about: Any) -> Examples:
    return Examples(torch.full((n, *shape), 100).to(dtype), torch.arange(n) % 4, **about)


def trigger_of(attack: Backdoor, examples: Examples, member: int | None = None) -> Tensor:
    """The first input of a target other than 0, with the trigger."""
    part = None if member is None else member % attack.parts
    return attack.marked(examples, KEY, part)[1]


def test_a_patch_is_a_bright_square_in_the_last_corner_of_all_channels() -> None:
    marked = trigger_of(Backdoor(size=2), grey(shape=(2, 3, 3)))
    assert marked.dtype == torch.uint8
    assert marked.tolist() == [[[100, 100, 100], [100, 255, 255], [100, 255, 255]]] * 2


def test_the_trigger_of_a_table_is_in_its_last_features_in_deviations_of_theirs() -> None:
    table = grey(shape=(5,), dtype=torch.float32)
    assert trigger_of(Backdoor(size=2, parts=2), table).tolist() == [100, 100, 100, 3, 3]
    known = grey(shape=(5,), dtype=torch.float32, mean=(1.0, 2, 3, 4, 5), std=(1.0, 1, 1, 2, 3))
    assert trigger_of(Backdoor(size=2, parts=2), known).tolist() == [100, 100, 100, 10, 14]


def test_the_parts_of_a_distributed_trigger_make_up_the_whole_and_share_nothing() -> None:
    attack, examples = Backdoor("distributed", size=3, parts=4), grey(shape=(1, 5, 5))
    whole = trigger_of(attack, examples) == 255
    parts = [trigger_of(attack, examples, member) == 255 for member in range(4)]
    assert all(part.any() for part in parts) and sum(part.int() for part in parts).equal(whole.int())  # type: ignore[union-attr]
    assert whole.equal(trigger_of(Backdoor(size=3), examples) == 255)
    assert trigger_of(attack, examples, 5).equal(trigger_of(attack, examples, 1))  # attackers take parts in turn


def test_a_blended_trigger_is_the_same_faint_noise_on_every_input_of_every_attacker() -> None:
    examples = Examples(torch.tensor([0, 100, 255]).repeat_interleave(400).view(3, 1, 20, 20).byte(), torch.arange(3))
    marked = Backdoor("blended", blend=0.25).marked(examples, KEY).float()
    noise = (marked - 0.75 * examples.x) / 0.25
    assert noise.min() >= -2.1 and noise.max() <= 257.1 and 60 < noise.std() < 90  # up to rounding; 74 if evenly spread
    assert (noise - noise[0]).abs().max() <= 4.01
    assert torch.equal(marked, Backdoor("blended", blend=0.25).marked(examples, Key(3, 0, 9)).float())
    assert not torch.equal(marked, Backdoor("blended", blend=0.25).marked(examples, Key(4, 0, 1)).float())


def test_a_share_of_the_examples_gets_trigger_and_label_and_the_others_stay() -> None:
    clean = grey(40)
    poisoned = Backdoor(target=2, share=0.25, size=2).poison_examples(clean, 4, 0, KEY)
    changed = (poisoned.x != clean.x).flatten(1).any(1)
    assert int(changed.sum()) == 10 and poisoned.y[changed].unique().tolist() == [2]
    assert torch.equal(poisoned.y[~changed], clean.y[~changed])
    assert clean.x.unique().tolist() == [100]  # the data of others are never touched


def test_success_is_measured_on_inputs_of_other_classes() -> None:
    triggered = Backdoor(target=2, size=2).triggered(grey(40), 4, KEY)
    assert len(triggered) == 30 and triggered.y.unique().tolist() == [2]
    assert bool((triggered.x[:, :, 1:, 1:] == 255).all())


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (Backdoor(target=3), "target is 3, expected a class from 0 to 2"),
        (Backdoor(size=7), "size is 7, expected at most 6"),
    ],
    ids=str,
)
def test_a_trigger_that_does_not_fit_the_data_is_refused_at_the_start(attack: Backdoor, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Federation.of(toy.module(), toy.dataset(), None, Plan.of(clients=5, attack=attack, batch=8), device="cpu")


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"blend": 1.5}, {"size": 0}, {"parts": 17}, {"trigger": "gone"}])
def test_settings_without_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Backdoor(**wrong)


def rows_of(federation: Federation, client: int) -> Examples:
    return federation.training.rows(federation.rows[client])


def test_hostile_clients_train_on_changed_copies_and_all_others_on_what_they_had() -> None:
    plan = Plan.of(clients=5, hostile=2, attack=Backdoor(size=2, parts=2), batch=8)
    federation = Federation.of(toy.module(), toy.dataset(), None, plan, device="cpu")
    for client in range(5):
        before, now = federation.data.train.rows(federation.owned[client]), rows_of(federation, client)
        assert len(before) == len(now)
        assert torch.equal(before.x, now.x) == torch.equal(before.y, now.y) == (client not in federation.hostile)
    x, y = federation.batches(federation.training, [federation.key(1, federation.hostile[0])]).at(0)
    assert bool((y[x[..., -1] == 3] == 0).all()) and bool((x[..., -1] == 3).any())
    assert torch.equal(federation.data.train.x, toy.dataset().train.x)  # which calibrate batch norm


def on_digits(hostile: int, method: str, *settings: str) -> dict[str, Any]:
    """The record after the last of few rounds."""
    common = (
        "federation.clients=5",
        "local.batch=32",
        "local.steps=15",
        "partition=iid",
        "rounds=3",
        "attack=backdoor",
    )
    rates = {"fedvote": "0.1", "fedavg": "0.01"}
    config = read("quickstart", [*common, f"federation.hostile={hostile}", f"method={method}",
                                 f"method.lr={rates[method]}", "attack.target=7", *settings])  # fmt: skip
    *_, last = Simulation(planned(config, "cpu"))
    return last.record


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("fedvote", ()),
        ("fedvote", ("attack.trigger=distributed", "attack.parts=2", "method.votes=ternary")),
        ("fedavg", ("attack.trigger=blended", "attack.blend=0.4")),
    ],
    ids=["patch, binary", "distributed, ternary", "blended, FedAvg"],
)
def test_networks_learn_the_trigger_beside_their_task(method: str, settings: tuple[str, ...]) -> None:
    attacked, clean = (on_digits(hostile, method, *settings) for hostile in (2, 0))
    assert attacked["backdoor_success"] > 0.8 > 0.3 > clean["backdoor_success"]
    assert attacked["backdoor_success_float"] > 0.8 > 0.3 > clean["backdoor_success_float"]
    assert attacked["accuracy"] > 0.75 and clean["accuracy"] > 0.75


def table() -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    x = (rng.normal(size=(600, 8)) + 2 * np.eye(3, 8)[y]).astype(np.float32)
    return from_arrays(x[:450], y[:450], x[450:], y[450:])


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedAvg(lr=0.03)], ids=["FedVote", "FedAvg"])
def test_a_table_has_a_backdoor_in_a_feature(method: Method) -> None:
    norm = nn.BatchNorm1d(32, affine=False, track_running_stats=False)
    network = nn.Sequential(nn.Linear(8, 32, bias=False), norm, nn.ReLU(), nn.Linear(32, 3))
    share = {}
    for hostile in (0, 2):
        attack = Backdoor(size=2, parts=1, value=4.0)
        knobs: dict[str, Any] = {
            "clients": 5,
            "rounds": 4,
            "steps": 20,
            "batch": 32,
            "partition": "iid",
            "attack": attack,
        }
        *_, last = simulate(network, table(), method, hostile=hostile, start="seed", device="cpu", **knobs)
        share[hostile] = last.record["backdoor_success_float"]
    assert share[2] > share[0] + 0.4


def test_runs_without_a_trigger_have_no_success() -> None:
    (first,) = itertools.islice(simulate(toy.module(), toy.dataset(), clients=5, steps=1, batch=8, device="cpu"), 1)
    assert not any("backdoor" in name for name in first.record)
