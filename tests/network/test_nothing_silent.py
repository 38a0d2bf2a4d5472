"""What a user brings is honoured, or named in one sentence: frozen and computed weights, buffers, tokens, losses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint

import fedvote
from fedvote import Doubt, FedAvg, FedPAQ, FedVote
from fedvote.core import Dataset
from fedvote.errors import ConfigError, ModelError
from fedvote.method import Method
from fedvote.methods import Eden, FetchSGD, SignSGD, Signum
from fedvote.network.network import Network
from fedvote.network.summary import FROZEN, MOVED, TRAINED


def points(tokens: bool = False) -> Dataset:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 240)
    x = rng.integers(0, 4, (240, 6)) + 4 * y[:, None] if tokens else 2 * np.eye(6)[y] + rng.normal(size=(240, 6))
    return fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:])


def mlp(outputs: int = 3) -> nn.Sequential:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, outputs))


def trained(network: nn.Module, data: Dataset, method: Method, **options: Any) -> tuple[nn.Module, float]:
    run = fedvote.simulate(network, data, method, clients=2, rounds=3, steps=10, batch=20, device="cpu", **options)
    *_, last = run
    return run.deployed(last), next(last.record[name] for name in ("accuracy", "r2") if name in last.record)


@pytest.mark.parametrize(
    ("method", "bits"),  # of one message, for each weight of the frozen layer if it were sent
    [
        (FedVote(coding="plain"), 0),
        (FedVote(coding="plain", train_float=True), 32),
        (FedVote(coding="plain", train_float=True, float_levels=7), 3.5),
        (FedAvg(), 32),
        (FedAvg(clip=0.1, down_levels=7), 14),
        (FedAvg(aggregate="centred-clipping"), 32),  # type: ignore[arg-type]
        (FedPAQ(levels=3, coding="plain"), 2.5),
        (Eden(block=8), 1),
        (SignSGD(), 1),
        (Signum(), 1),
        (FetchSGD(), 32),
    ],
    ids=repr,
)
@pytest.mark.parametrize("wire", ["weighed", "written"])
def test_weights_that_the_user_froze_stay_to_the_bit_and_are_not_sent(method: Method, bits: float, wire: str) -> None:
    def after(network: nn.Module) -> tuple[Any, int]:
        run = fedvote.simulate(
            network, points(), method, clients=3, rounds=2, steps=5, batch=20, device="cpu", keep_float=["4"], wire=wire
        )
        *_, last = run
        assert sum(layer.bits_up for layer in run.federation.summary().layers if layer.role == FROZEN) == 0
        return run.deployed(last), last.record["uplink_bytes"]

    whole, part = mlp(), mlp()
    part[0].requires_grad_(False)
    part[4].bias.requires_grad_(False)
    (_, all_bytes), (found, fewer_bytes) = after(whole), after(part)
    for name in ("0.weight", "0.bias", "4.bias"):
        assert torch.equal(found.get_parameter(name), part.get_parameter(name))
    assert not torch.equal(found.get_parameter("2.weight"), part.get_parameter("2.weight"))
    # 96 weights that were voted on and 19 floats
    assert all_bytes - fewer_bytes >= 3 * 19 * bits / 8 - 3


@pytest.mark.parametrize("method", [FedVote(coding="plain", train_float=True), FedAvg(), FedPAQ(), Eden()], ids=repr)
def test_the_server_sends_frozen_weights_once(method: Method) -> None:
    network = nn.Sequential(nn.Linear(6, 300), nn.ReLU(), nn.Linear(300, 4), nn.ReLU(), nn.Linear(4, 3))
    network[0].requires_grad_(False)  # 2,100 weights; 1,219 others
    run = fedvote.simulate(
        network, points(), method, clients=2, rounds=2, steps=2, batch=20, device="cpu", wire="written"
    )
    first, second = (snapshot.record["downlink_bytes"] / 2 for snapshot in run)
    assert first > 4 * 2100 and second < 7 * 1219 + 200  # values, and where they are


@pytest.mark.parametrize("method", [FedVote(), FedAvg()])
def test_weights_that_the_user_froze_stay_as_the_seed_draws_them(method: Method) -> None:
    network = mlp()
    network[0].requires_grad_(False)
    run = fedvote.simulate(network, points(), method, clients=2, rounds=2, batch=20, device="cpu", start="seed")
    made = run.federation.network
    drawn = Network(mlp(), run.federation.plan.seed)
    assert "0.weight" not in {slot.name for slot in made.voted}
    *_, last = run
    found = run.deployed(last)[0].weight.flatten()  # type: ignore[index]
    assert torch.equal(found, drawn.start.voted[: len(found)])


def test_the_seed_leaves_norms_out_of_the_frozen_weights() -> None:
    network = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 8), nn.Linear(8, 3))
    network[:2].requires_grad_(False)
    assert Network(network).frozen == {"0.weight", "0.bias"}
    assert Network(network, start="given").frozen == {"0.weight", "0.bias", "1.weight", "1.bias"}


@pytest.mark.parametrize("method", [FedVote(), FedAvg(), Eden()])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["2.weight", "4.bias"])
@pytest.mark.parametrize("given", [True, False], ids=["module", "state dict"])
def test_given_weights_that_are_no_numbers_are_named(method: Method, value: float, name: str, given: bool) -> None:
    network = mlp()
    with torch.no_grad():
        network.get_parameter(name).view(-1)[1] = value
    module, start = (network, "given") if given else (mlp(), network.state_dict())
    with pytest.raises(ConfigError, match=rf'weights of {name} have NaN or infinite .* start="seed"'):
        fedvote.simulate(module, points(), method, clients=2, start=start)


@pytest.mark.parametrize("method", [FedVote(), FedAvg()])
def test_names_that_contradict_each_other_are_one_sentence(method: Method) -> None:
    with pytest.raises(ModelError, match=r"keep_float and vote both name 2.weight: leave it out of one"):
        fedvote.simulate(mlp(), points(), method, clients=2, keep_float=["2", "4"], vote=["2"])
    network = mlp()
    network[0].requires_grad_(False)
    with pytest.raises(ModelError, match=r"vote names '0', but 0.weight is frozen .*requires_grad_\(True\)"):
        fedvote.simulate(network, points(), method, clients=2, vote=["0"])


def test_vote_may_name_the_last_layer() -> None:
    assert "4.weight" in {slot.name for slot in Network(mlp(), vote=["4"], shape=(6,)).voted}


@dataclass(frozen=True)
class MovesAll(FedAvg):
    keeps_frozen = False


def test_a_method_that_moves_every_weight_says_so_of_frozen_ones() -> None:
    network = mlp()
    network[0].requires_grad_(False)
    with pytest.warns(
        Doubt, match=r"0.bias, 0.weight: requires_grad is False, but MovesAll moves every weight.*fedavg"
    ):
        run = fedvote.simulate(network, points(), MovesAll(), clients=2)
    roles = {layer.name: layer.role for layer in run.federation.summary().layers}
    assert roles["0.weight"] == MOVED and roles["2.weight"] == TRAINED
    network[2].requires_grad_(False)
    network[4].bias.requires_grad_(False)
    with pytest.warns(Doubt, match=r"2.bias, 2.weight and 1 more: requires_grad"):
        fedvote.simulate(network, points(), MovesAll(), clients=2)


def test_a_network_that_is_frozen_as_a_whole_trains() -> None:
    network = mlp().requires_grad_(False)
    assert not Network(network, start="given").frozen


class Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 16), nn.Linear(16, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return 5 * F.linear(F.normalize(self.body(x).relu()), F.normalize(self.head.weight))


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(12, 16, bias=False), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(F.one_hot(x.long(), 12).float().mean(1)).relu())  # type: ignore[no-any-return]


class Scaled(Normalised):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3, 1))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.body(x).relu(), self.scale * F.normalize(self.head.weight))


class Tokens(Normalised):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.mix = nn.Embedding(12, 6), nn.MultiheadAttention(6, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x.long())
        return self.head(self.body(self.mix(h, h, h, need_weights=False)[0].mean(1)))  # type: ignore[no-any-return]


def test_layers_whose_weights_are_multiplied_are_all_last() -> None:
    class Product(Normalised):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = nn.Linear(2, 3, bias=False), nn.Linear(16, 2, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(self.body(x), self.head.weight + self.up.weight @ self.down.weight)

    with pytest.raises(ModelError, match=r"several last layers \(down, head, up\)"):
        Network(Product(), shape=(6,))


@pytest.mark.parametrize("make", [Normalised, OneHot, Scaled])
def test_the_last_layer_is_found_if_its_weight_is_computed_or_the_input_has_no_gradient(
    make: Callable[[], nn.Module],
) -> None:
    assert [slot.name for slot in Network(make(), shape=(6,)).voted] == ["body.weight"]


def test_the_last_layer_is_found_behind_tokens_and_attention() -> None:
    assert "head.weight" not in {slot.name for slot in Network(Tokens(), shape=(6,)).voted}


@pytest.mark.parametrize("wrap", [weight_norm, orthogonal], ids=["weight_norm", "orthogonal"])
def test_float_methods_train_computed_weights_and_votes_name_the_fix(wrap: Callable[..., nn.Module]) -> None:
    network = mlp()
    network[2] = wrap(network[2])
    assert trained(network, points(), FedAvg(lr=0.03))[1] > 0.6
    with pytest.raises(ModelError, match=r"2 .* computes its weights .*: call .*remove_parametrizations"):
        fedvote.simulate(network, points())


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.body, self.head = nn.EmbeddingBag(12, 16), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.table(x.long())).relu())  # type: ignore[no-any-return]


def test_a_layer_that_cannot_be_stacked_trains_client_by_client_without_a_warning_of_torch() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = fedvote.simulate(Bag(), points(tokens=True), FedVote(lr=0.1), clients=2, rounds=3, batch=20, device="cpu")
        assert list(run)[-1].record["accuracy"] > 0.6
    assert not run.federation.network.stackable


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.mul_(0.5))  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedAvg(lr=0.03)])
def test_a_forward_that_changes_its_input_trains_as_one_that_does_not(method: Method) -> None:
    class Apart(InPlace):
        def forward(self, x: Tensor) -> Tensor:
            return self.body(x * 0.5)  # type: ignore[no-any-return]

    data, clean = points(), points()
    (found, right), (expected, other) = (trained(made, data, method) for made in (InPlace(), Apart()))
    assert right == other > 0.4 and torch.equal(data.train.x, clean.train.x)
    assert all(map(torch.equal, found.parameters(), expected.parameters()))


@pytest.mark.parametrize("method", [FedVote(lr=0.1), FedVote(lr=0.1, train_float=True), FedAvg(lr=0.03)])
@pytest.mark.parametrize("stacked", [True, False])
def test_a_forward_that_keeps_its_features_trains(method: Method, stacked: bool) -> None:
    class Features(InPlace):
        def forward(self, x: Tensor) -> Tensor:
            self.features = self.body[:4](x)
            scale = 1 if stacked or self.features.sum() < 1e9 else 2
            return self.body[4](self.features) * scale  # type: ignore[no-any-return]

    run = fedvote.simulate(Features(), points(), method, clients=2, rounds=3, steps=10, batch=20, device="cpu")
    *_, last = run
    assert run.federation.network.stackable == stacked
    assert last.record["accuracy"] > 0.4 and fedvote.evaluate(run.deployed(last), points())["accuracy"] > 0.4


class Backbone(InPlace):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.body[:2](x)
        return self.body[2:](x)  # type: ignore[no-any-return]


def test_weights_that_votes_would_move_at_random_are_a_doubt_and_its_fix_works() -> None:
    network = Backbone()
    with pytest.warns(Doubt, match=r"body.0.weight: voted on, but without a gradient .* requires_grad_\(False\) on it"):
        fedvote.simulate(network, points(), clients=2, batch=20)
    network.body[0].requires_grad_(False)
    after, accuracy = trained(network, points(), FedVote(lr=0.1))
    assert torch.equal(after.get_parameter("body.0.weight"), network.get_parameter("body.0.weight")) and accuracy > 0.4


def test_finding_the_last_layer_changes_no_buffer() -> None:
    class Observing(InPlace):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("top", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.top.fill_(float(x.max()))  # type: ignore[operator]
            return self.body(x)  # type: ignore[no-any-return]

    with pytest.raises(ModelError, match="the forward pass changes top"):
        fedvote.simulate(Observing(), points(), clients=2)


def test_a_compiled_network_is_the_network_that_was_compiled() -> None:
    network = mlp()
    made = Network(torch.compile(network), start="given", shape=(6,))  # type: ignore[arg-type]
    assert made.fingerprint == Network(network, start="given", shape=(6,)).fingerprint


def test_a_last_layer_that_starts_at_zero_and_stays_there_is_a_doubt() -> None:
    network = mlp()
    nn.init.zeros_(network.get_parameter("4.weight"))
    with pytest.warns(
        Doubt, match=r"0.weight, 2.weight got a gradient of zero .*: 4.weight starts at zero .*train_float"
    ):
        fedvote.simulate(network, points(), clients=2, batch=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (FedVote(lr=0.1, train_float=True, float_lr=0.03), FedAvg(lr=0.03)):
            assert trained(network, points(), method)[1] > 0.6


def test_weights_too_large_to_be_sent_are_named() -> None:
    network = mlp()
    with torch.no_grad():
        network.get_parameter("4.weight").mul_(1e12)
    with pytest.raises(ConfigError, match=r"weights of 4.weight have .* beyond ±1.07e\+09.*start=\"seed\""):
        fedvote.simulate(network, points(), FedAvg(), clients=2)


def test_a_refusal_names_the_matrices_that_can_be_voted_on() -> None:
    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.GRUCell(6, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.cell(x))  # type: ignore[no-any-return]

    with pytest.raises(ModelError, match=r"name others in vote: cell.weight_ih, cell.weight_hh$"):
        fedvote.simulate(Cell(), points(), clients=2)
    assert trained(Cell(), points(), FedVote(lr=0.1), vote=["cell.weight_ih", "cell.weight_hh"])[1] > 0.5


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = mlp()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1  # type: ignore[operator, assignment]
        return self.body(x)  # type: ignore[no-any-return]


class Averaging(Counting):
    mean: Tensor | float = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return self.body(x - self.mean)  # type: ignore[no-any-return]


class Recomputed(Counting):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.body, x, use_reentrant=False)  # type: ignore[no-any-return]


class Keeping(Counting):
    def forward(self, x: Tensor) -> Tensor:
        self.last = self.body(x)
        return self.last  # type: ignore[no-any-return]


def kept() -> nn.Module:
    network = Keeping()
    network(torch.zeros(2, 6))
    return network


class OfDict(Counting):
    def forward(self, x: dict[str, Tensor]) -> Tensor:  # type: ignore[override]
        return self.body(x["inputs"])  # type: ignore[no-any-return]


class Wrapped(nn.Module):
    def forward(self, x: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=x)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(nn.Linear(6, 8))


class Detached(Counting):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x).detach()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (Counting, "the forward pass changes calls, which clients would share"),
        (lambda: nn.Sequential(spectral_norm(nn.Linear(6, 3))), r"the forward pass changes 0.parametrizations.* _?"),
        (OfDict, "it is called with one tensor, a batch of inputs: wrap a network that takes a dict"),
        (Detached, "the network's output has no gradient, so nothing can train"),
        (Averaging, "gives other outputs .* called again, so it keeps numbers in an attribute"),
        (Recomputed, "gradient cannot be computed .*: call its layers without torch.utils.checkpoint"),
        (kept, "the network cannot be copied .*: keep no outputs in its attributes"),
        (lambda: nn.Sequential(nn.Flatten(), nn.Identity()), "has no weights, so nothing can train: add a layer"),
        (
            lambda: nn.Sequential(scripted(), nn.Linear(8, 3)),
            "0 is a RecursiveScriptModule, .*: use the nn.Module that",
        ),
        (
            lambda: nn.Sequential(mlp(), Wrapped()),
            "gives a SimpleNamespace .* expected one tensor .*: return that tensor",
        ),
        (lambda: nn.DataParallel(mlp()), "the network itself is a DataParallel, .*: use its .module"),
    ],
)
def test_a_network_that_cannot_train_gets_one_sentence(make: Callable[[], nn.Module], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence) as refusal:
        fedvote.simulate(make(), points(), FedAvg())
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("rows", "fits"), [(12, True), (11, False)])
def test_a_token_outside_an_embedding_is_found_before_training(rows: int, fits: bool) -> None:
    network = OneHot()
    network.forward = lambda x: network.head(network.table(x.long()).mean(1))  # type: ignore[method-assign, operator]
    network.table = nn.Embedding(rows, 16)
    if fits:
        fedvote.simulate(network, points(tokens=True), FedAvg(), clients=2, batch=8)
    else:
        with pytest.raises(ModelError, match=r"examples of the training data .* from 0 to 11: an embedding"):
            fedvote.simulate(network, points(tokens=True), FedAvg(), clients=2, batch=8)


def stepwise(outputs: Tensor, targets: Tensor) -> Tensor:
    loss = F.cross_entropy(outputs, targets)
    return loss if loss > 0.1 else 2 * loss


def test_a_loss_that_depends_on_its_value_trains_client_by_client() -> None:
    run = fedvote.simulate(mlp(), points(), FedAvg(lr=0.01), loss=stepwise, clients=2, rounds=1, device="cpu")
    assert not run.federation.network.stackable and len(list(run)) == 1
    assert "this network or its loss cannot run as a stack" in str(run.federation.summary()).replace("\n", " ")


@pytest.mark.parametrize("column", [False, True])
def test_a_loss_of_ones_own_gets_outputs_and_targets_of_one_shape(column: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 6))
    y = x @ rng.normal(size=6) / 3
    y = y[:, None] if column else y
    data = fedvote.from_arrays(x[:200], y[:200], x[200:], y[200:], task="regression")
    shapes = set()

    def squared(outputs: Tensor, targets: Tensor) -> Tensor:
        shapes.add(outputs.ndim == targets.ndim == 1)
        return (outputs - targets).square().mean()

    assert trained(mlp(1), data, FedAvg(lr=0.01), loss=squared)[1] > 0.5 and shapes == {True}
    with pytest.raises(ConfigError, match=r"fails on outputs of shape \(100,\) and targets of .* \(100,\)"):
        fedvote.simulate(mlp(1), data, loss=lambda outputs, targets: (outputs[:, 0] - targets).mean())


def test_float64_weights_that_are_rounded_are_named() -> None:
    network = mlp().double()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Network(network, start="given")  # all of them are float32 numbers
    nn.init.constant_(next(network.parameters()), 0.1)
    with pytest.warns(Doubt, match=r"0.weight: float64 weights are rounded to float32"):
        Network(network, start="given")


class Padded(Tokens):
    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(6, 6))

    def forward(self, x: Tensor) -> Tensor:
        h = self.table(x.long()) + self.place
        mixed = self.mix(h, h, h, key_padding_mask=x.long() == 0, need_weights=False)[0]
        return self.head(self.body(mixed.nan_to_num(0).mean(1)))  # type: ignore[no-any-return]


def test_weights_that_start_at_zero_and_stop_nothing_raise_no_doubt() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Doubt)
        fedvote.simulate(Padded(), points(tokens=True), clients=2, batch=20, vote=["mix.in_proj_weight"])
