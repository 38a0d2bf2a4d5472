"""Given weights are kept: exactly by float methods, scaled by FedVote. What does not fit is one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from fedvote import FedAvg, FedVote, simulate
from fedvote.errors import ModelError
from fedvote.federation import Federation
from fedvote.method import Method
from fedvote.plan import Plan
from tests.toy import dataset


def module(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = nn.Sequential(
            nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)
        )
        for parameter in made.parameters():
            nn.init.normal_(parameter)
        return made


def federation(method: Method, **options: object) -> Federation:
    plan = Plan.of(clients=5, rounds=1, batch=8, steps=1)
    return Federation.of(module(), dataset(), method, plan, device="cpu", **options)  # type: ignore[arg-type]


def test_a_float_method_starts_from_exactly_the_given_network_with_its_norms() -> None:
    made = federation(FedAvg())
    x = dataset().train.x[:40]
    network, weights = made.network, made.method.models(made.start().state)["deployed"]
    torch.testing.assert_close(network(weights.voted, weights.floats, x), module().train()(x))
    handed_out = made.deployed(made.start()).network.state_dict()
    for name, value in module().named_parameters():
        assert torch.equal(handed_out[name], value), name


def test_fedvote_keeps_the_sign_and_order_of_given_weights_and_the_floats_themselves() -> None:
    made = federation(FedVote())
    models = made.method.models(made.start().state)
    for slot in made.network.voted:
        given = module().get_parameter(slot.name).flatten()
        soft, votes = (models[name].voted[slot.start : slot.stop] for name in ("float", "deployed"))
        assert torch.equal(votes, torch.where(given >= 0, 1.0, -1.0))
        inside = soft.abs() < 0.99
        torch.testing.assert_close(
            soft[inside] / soft[inside][0], given[inside] / given[inside][0], rtol=0.02, atol=0.01
        )
    for slot in made.network.floats:
        assert torch.equal(
            models["float"].floats[slot.start : slot.stop], module().get_parameter(slot.name).flatten().detach()
        )


def test_the_seed_draws_anew_if_asked() -> None:
    first, second = (
        Federation.of(module(seed), dataset(), FedAvg(), Plan.of(clients=5, rounds=1, batch=8), start="seed")
        for seed in (0, 1)
    )
    assert torch.equal(first.network.start.voted, second.network.start.voted)
    assert torch.equal(first.network.start.floats, second.network.start.floats)
    assert first.network.drops_norms and not first.network.given


@pytest.mark.parametrize(
    ("save", "ending"), [(save_file, "safetensors"), (torch.save, "pt")], ids=["safetensors", "torch"]
)
def test_a_file_of_weights_is_a_start(save: Callable[..., None], ending: str, tmp_path: Path) -> None:
    save(module(7).state_dict(), tmp_path / f"weights.{ending}")
    for start in (tmp_path / f"weights.{ending}", module(7).state_dict()):
        made = federation(FedAvg(), start=start)
        voted = torch.cat([module(7).get_parameter(slot.name).flatten() for slot in made.network.voted])
        assert torch.equal(made.network.start.voted, voted)


def test_a_start_needs_no_running_statistics() -> None:
    parameters = {name: value.detach() for name, value in module(7).named_parameters()}
    assert parameters.keys() < module(7).state_dict().keys()
    bare, whole = (federation(FedAvg(), start=start).network for start in (parameters, module(7).state_dict()))
    assert bare.starts_as(whole)


def changed(name: str, value: Tensor | None) -> dict[str, Tensor]:
    weights = {key: tensor for key, tensor in module().state_dict().items() if key != name}
    return weights if value is None else {**weights, name: value}


@pytest.mark.parametrize(
    ("start", "saying"),
    [
        (
            changed("4.weight", torch.zeros(9, 8)),
            r"has 4.weight of shape \(9, 8\), but the network has \(8, 8\): change",
        ),
        (changed("4.weight", None), "has no 4.weight, expected all weights of the network"),
        (
            changed("extra", torch.zeros(2)),
            "has extra, which the network does not have: use the network it was saved from",
        ),
        ("nowhere.safetensors", "start is 'nowhere.safetensors', expected .*a file of weights that exists"),
    ],
    ids=["another shape", "missing", "foreign", "no file"],
)
def test_weights_that_do_not_fit_are_one_sentence(start: object, saying: str) -> None:
    with pytest.raises(ModelError, match=saying):
        federation(FedAvg(), start=start)


@pytest.mark.parametrize("content", [b"", b"no weights", b"\x80\x04K\x01."])
@pytest.mark.parametrize("ending", ["safetensors", "pt"])
def test_a_file_that_holds_no_weights_is_one_sentence(content: bytes, ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"weights.{ending}"
    file.write_bytes(content)
    with pytest.raises(
        ModelError, match=r"weights\.\w+ (cannot be read|is not a state dict).*save module.state_dict\(\)"
    ):
        federation(FedAvg(), start=file)


def trained() -> nn.Module:
    """A network of one hidden layer that classifies every example of the toy data's training set."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    data = dataset().train
    optimizer = torch.optim.Adam(made.parameters(), 0.02)
    for _ in range(300):
        optimizer.zero_grad()
        nn.functional.cross_entropy(made(data.x), data.y).backward()
        optimizer.step()
    return made


def test_a_trained_network_stays_as_good_under_fedavg_and_helps_fedvote() -> None:
    network = trained()

    def accuracies(method: Method, start: str, rounds: int) -> list[float]:
        run = simulate(network, dataset(), method, clients=5, rounds=rounds, steps=5, batch=20, start=start)
        return [snapshot.record["accuracy"] for snapshot in run]

    assert accuracies(FedAvg(lr=1e-4), "given", 1)[0] > 0.99
    given, anew = (accuracies(FedVote(lr=0.01), start, 3)[-1] for start in ("given", "seed"))
    assert given > anew
