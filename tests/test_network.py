"""Any nn.Module as a function of two flat vectors: it computes what the module computes, for one client or a stack."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import vmap
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.core import Key, ModelError, State, Weights
from fedvote.models import MODELS
from fedvote.network import Network, StaticBatchNorm, votable_weights
from fedvote.validate import problems


class Residual(nn.Module):
    """Layers two deep, with a path around them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1, stride=2)
        self.block = nn.Sequential(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False), nn.BatchNorm2d(4))
        )
        self.head = nn.ModuleDict({"norm": nn.LayerNorm(4), "out": nn.Linear(4, 3)})

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        x = (x + self.block(x)).relu().mean((2, 3))
        out: Tensor = self.head["out"](self.head["norm"](x))
        return out


class Tied(nn.Module):
    """An encoder and a decoder with one weight between them."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(5, 5)
        self.decode = nn.Linear(5, 5, bias=False)
        self.decode.weight = self.encode.weight
        self.out = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.decode(self.encode(x).tanh()))
        return out


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]  # of one input
    voted: tuple[str, ...]
    keep_float: tuple[str, ...] | None = None

    def network(self, seed: int = 0) -> Network:
        return Network(self.make(), seed, self.keep_float)


CASES = {
    "linear": Case(lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), (5,), ("0.weight",)),
    "conv1d": Case(
        lambda: nn.Sequential(
            nn.Conv1d(2, 4, 3, dilation=2), nn.BatchNorm1d(4), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)
        ),
        (2, 7),
        ("0.weight",),
    ),
    "conv2d": Case(
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular"),
            nn.BatchNorm2d(4, eps=0.1, affine=False, track_running_stats=False),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, (3, 1), bias=False),
            nn.Flatten(),
            nn.BatchNorm1d(48),
            nn.Linear(48, 3),
        ),
        (1, 8, 8),
        ("0.weight", "4.weight"),
    ),
    "transposed": Case(
        lambda: nn.Sequential(
            nn.ConvTranspose2d(2, 3, 2, stride=2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 3, bias=False)
        ),
        (2, 2, 2),
        ("0.weight",),
    ),
    "residual": Case(Residual, (2, 6, 6), ("stem.weight", "block.0.0.weight")),
    "tied": Case(Tied, (5,), ("encode.weight",)),
    "one layer": Case(lambda: nn.Linear(5, 3), (5,), ("weight",), keep_float=()),
    "nothing float": Case(
        lambda: nn.Sequential(nn.Linear(5, 4, bias=False), nn.BatchNorm1d(4), nn.Linear(4, 3, bias=False)),
        (5,),
        ("0.weight", "2.weight"),
        keep_float=(),
    ),
    "no linear layer": Case(
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 2), nn.Flatten()), (1, 4, 4), ("0.weight",)
    ),
}
WITH_NORM = [name for name, case in CASES.items() if any(isinstance(m, _BatchNorm) for m in case.make().modules())]
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_case_with_norm = pytest.mark.parametrize("case", [CASES[name] for name in WITH_NORM], ids=WITH_NORM)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=Key(seed).torch("test"))


def some_weights(network: Network, seed: int = 1) -> Weights:
    return Weights(normal(network.D, seed=seed), normal(network.F, seed=seed + 1000))


def as_torch_runs_it(case: Case, network: Network, weights: Weights) -> nn.Module:
    """The user's own module with these weights, its batch norms without parameters and recording one batch."""
    module = case.make().train()
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            layer.affine, layer.momentum, layer.track_running_stats = False, 1.0, True
            layer.register_parameter("weight", None)
            layer.register_parameter("bias", None)
            layer.register_buffer("running_mean", torch.zeros(layer.num_features))
            layer.register_buffer("running_var", torch.ones(layer.num_features))
            layer.register_buffer("num_batches_tracked", torch.tensor(0))
    with torch.no_grad():
        for slots, flat in ((network.voted, weights.voted), (network.floats, weights.floats)):
            for slot in slots:
                module.get_parameter(slot.name).copy_(flat[slot.start : slot.stop].reshape(slot.shape))
    return module


# What the network computes


@every_case
def test_outputs_are_those_of_the_module_run_normally(case: Case) -> None:
    network, x = case.network(), normal(6, *case.shape)
    weights = some_weights(network)
    expected = as_torch_runs_it(case, network, weights)(x)
    assert expected.shape == (6, 3)
    torch.testing.assert_close(network(weights.voted, weights.floats, x), expected)


@every_case
def test_gradients_are_those_of_the_module_run_normally(case: Case) -> None:
    network, x, y = case.network(), normal(6, *case.shape), torch.tensor([0, 1, 2, 0, 1, 2])
    weights = some_weights(network)
    voted = weights.voted.clone().requires_grad_()
    network.loss(voted, weights.floats, x, y).backward()
    module = as_torch_runs_it(case, network, weights)
    F.cross_entropy(module(x), y).backward()
    gradients = [module.get_parameter(slot.name).grad for slot in network.voted]
    expected = torch.cat([gradient.flatten() for gradient in gradients if gradient is not None])
    assert voted.grad is not None
    torch.testing.assert_close(voted.grad, expected, atol=1e-5, rtol=1e-4)


@every_case
def test_every_parameter_has_its_place_in_one_vector(case: Case) -> None:
    network = case.network()
    assert tuple(slot.name for slot in network.voted) == case.voted
    for slots, size in ((network.voted, network.D), (network.floats, network.F)):
        assert [slot.start for slot in slots] == [0, *(slot.stop for slot in slots)][: len(slots)]
        assert sum(slot.size for slot in slots) == size
    assert network.start.voted.shape == (network.D,) and network.start.floats.shape == (network.F,)
    norms = {n for n, layer in case.make().named_modules() if isinstance(layer, _BatchNorm)}
    trained = {n for n, _ in case.make().named_parameters() if n.rpartition(".")[0] not in norms}
    assert {slot.name for slot in (*network.voted, *network.floats)} == trained


def test_a_network_may_have_no_float_weight() -> None:
    assert CASES["nothing float"].network().F == 0


@every_case
def test_the_loss_of_stacked_clients_is_each_clients_alone(case: Case) -> None:
    K, network = 3, case.network()
    voted_KD, floats_KF = normal(K, network.D, seed=2), normal(K, network.F, seed=3)
    x_KB, y_KB = normal(K, 5, *case.shape, seed=4), torch.tensor([[0, 1, 2, 0, 1], [2, 2, 2, 1, 0], [1, 1, 1, 1, 1]])
    one_by_one = [F.cross_entropy(network(voted_KD[k], floats_KF[k], x_KB[k]), y_KB[k]) for k in range(K)]
    torch.testing.assert_close(vmap(network.loss)(voted_KD, floats_KF, x_KB, y_KB), torch.stack(one_by_one))


@every_case_with_norm
def test_batch_statistics_do_not_leak_from_client_to_client(case: Case) -> None:
    """One client's inputs are a thousand times larger and far from zero: a shared mean would drown the other's."""
    network, quiet_x = case.network(), normal(1, 5, *case.shape, seed=5)
    voted_KD, y_KB = normal(2, network.D, seed=6).requires_grad_(), torch.tensor([[0, 1, 2, 0, 1]] * 2)
    floats = some_weights(network).floats
    loss = vmap(network.loss, in_dims=(0, None, 0, 0))
    alone = loss(voted_KD[:1], floats, quiet_x, y_KB[:1])[0]
    for neighbour in (quiet_x, 1000 * quiet_x + 5000):
        together = loss(voted_KD, floats, torch.cat([quiet_x, neighbour]), y_KB)[0]
        torch.testing.assert_close(together, alone)
        (gradient,) = torch.autograd.grad(together, voted_KD)
        assert gradient[0].abs().max() > 0 and gradient[1].abs().max() == 0


def test_a_users_own_loss_is_used() -> None:
    network = Network(CASES["linear"].make(), loss=lambda outputs, y: (outputs.sum(1) - y).abs().mean())
    x, y, weights = normal(4, 5), torch.tensor([1.0, 2.0, 3.0, 4.0]), some_weights(network)
    expected = (network(weights.voted, weights.floats, x).sum(1) - y).abs().mean()
    torch.testing.assert_close(network.loss(weights.voted, weights.floats, x, y), expected)


# What is voted on


def layers(*names: str) -> nn.Module:
    return nn.ModuleDict({name: nn.Conv2d(1, 1, 1) if "conv" in name else nn.Linear(1, 1) for name in names})


@pytest.mark.parametrize(
    ("names", "keep_float", "voted"),
    [
        (("conv1", "conv2", "fc1", "fc2"), None, {"conv1", "conv2", "fc1"}),
        (("fc1", "fc2", "conv1"), None, {"fc1", "conv1"}),  # the last linear layer, not the last layer
        (("conv1", "conv2"), None, {"conv1"}),
        (("conv1", "conv2", "fc1", "fc2"), (), {"conv1", "conv2", "fc1", "fc2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("conv1",), {"conv2", "fc1", "fc2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("fc*",), {"conv1", "conv2"}),
        (("conv1", "conv2", "fc1", "fc2"), ("conv?", "fc2"), {"fc1"}),
    ],
)
def test_voted_are_all_weights_but_those_kept_float(
    names: tuple[str, ...], keep_float: tuple[str, ...] | None, voted: set[str]
) -> None:
    assert votable_weights(layers(*names), keep_float) == {f"{name}.weight" for name in voted}


def test_a_pattern_that_fits_no_layer_is_refused_naming_the_layers() -> None:
    with pytest.raises(ModelError, match=r"'fc9'.*there are: conv1, fc1, fc2"):
        Network(layers("conv1", "fc1", "fc2"), keep_float=("fc1", "fc9"))


@pytest.mark.parametrize("keep_float", [None, ("decode",), ("encode",)])
def test_a_weight_shared_with_a_float_layer_is_float(keep_float: tuple[str, ...] | None) -> None:
    module = Tied()
    module.out = nn.Identity()  # type: ignore[assignment]
    with pytest.raises(ModelError, match="no weights to vote on"):
        Network(module, keep_float=keep_float)
    assert [slot.name for slot in Network(module, keep_float=()).voted] == ["encode.weight"]


@pytest.mark.parametrize("module", [nn.Sequential(nn.ReLU()), nn.Linear(3, 2), nn.Sequential(nn.LayerNorm(3))])
def test_a_model_without_votable_weights_is_refused(module: nn.Module) -> None:
    with pytest.raises(ModelError, match=f"{type(module).__name__} has no weights to vote on.*keep_float"):
        Network(module)


@pytest.mark.parametrize(
    ("name", "shape", "D", "F"),
    [
        ("lenet5", (1, 28, 28), 25 * 32 + 25 * 32 * 64 + 49 * 64 * 512, 512 * 10),
        ("vgg7", (3, 32, 32), 12_963_200, 1024 * 10),
    ],
)
def test_the_papers_networks_have_the_papers_sizes(name: str, shape: tuple[int, ...], D: int, F: int) -> None:
    network = Network(MODELS[name](shape, 10))
    assert (network.D, network.F) == (D, F)
    if name == "lenet5":
        assert D == 1_657_632


# Where training starts


def test_the_start_depends_on_the_seed_alone() -> None:
    def start(seed: int, made_with: int) -> Tensor:
        torch.manual_seed(made_with)
        network = Network(Residual(), seed)
        return torch.cat([network.start.voted, network.start.floats])

    before = torch.get_rng_state()
    try:
        assert torch.equal(start(0, made_with=1), start(0, made_with=2))
        assert not torch.equal(start(0, made_with=1), start(1, made_with=1))
    finally:
        torch.set_rng_state(before)


def test_the_start_leaves_the_global_generator_alone() -> None:
    module = Residual()
    before = torch.get_rng_state()
    Network(module).check((2, 6, 6), 3)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_start_has_kaiming_weights_and_no_bias() -> None:
    network = Network(nn.Sequential(nn.Conv2d(8, 50, 5), nn.Flatten(), nn.Linear(200, 100)), keep_float=("2",))
    assert network.start.voted.std().item() == pytest.approx((2 / (8 * 25)) ** 0.5, rel=0.05)
    biases = [slot for slot in network.floats if slot.name.endswith("bias")]
    assert [slot.name for slot in biases] == ["0.bias", "2.bias"]
    assert all((network.start.floats[slot.start : slot.stop] == 0).all() for slot in biases)


def test_standardised_layers_have_deviation_one_each() -> None:
    network = CASES["conv2d"].network()
    wide = torch.cat([torch.tensor([3.0, -3.0]).repeat(18), 0.01 * network.start.voted[36:]])
    flat = network.standardise(wide)
    assert flat[:36].tolist() == [1.0, -1.0] * 18
    assert flat[36:].std(correction=0).item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(flat[36:] / flat[36], network.start.voted[36:] / network.start.voted[36])


@pytest.mark.parametrize("training", [True, False])
def test_the_module_given_is_not_changed(training: bool) -> None:
    module = Residual().double().train(training)
    before = copy.deepcopy(module.state_dict())
    network = Network(module)
    network.check((2, 6, 6), 3)
    weights = some_weights(network)
    network.module(weights, network.calibrate(weights, normal(4, 2, 6, 6)))
    after = module.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    assert all(layer.training is training for layer in module.modules())
    assert all(p.requires_grad and p.dtype == torch.float64 for p in module.parameters())
    assert not any(isinstance(layer, StaticBatchNorm) for layer in module.modules())


def test_a_network_for_another_device_is_another_network() -> None:
    network = CASES["residual"].network()
    other = network.to("cpu")
    assert other is not network and other.fingerprint == network.fingerprint
    assert torch.equal(other.start.voted, network.start.voted)


def test_the_fingerprint_tells_networks_apart_by_names_shapes_and_votes() -> None:
    def made(
        width: int = 4, name: str = "a", classes: int = 2, keep_float: tuple[str, ...] | None = None, seed: int = 0
    ) -> bytes:
        module = nn.ModuleDict({name: nn.Linear(5, width), "out": nn.Linear(4, 3), "last": nn.Linear(3, classes)})
        return Network(module, seed, keep_float).fingerprint

    assert made() == made(seed=1) and len(made()) == 8
    assert len({made(), made(width=5), made(name="b"), made(classes=9), made(keep_float=("out",))}) == 5


# What is refused


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(2, dtype=torch.complex64))


def old_weight_norm() -> nn.Module:
    with pytest.warns(FutureWarning):
        return nn.utils.weight_norm(nn.Linear(2, 2))


BAD: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "drop": (lambda: nn.Dropout(0.5), "drop (Dropout) draws random numbers*remove it or set p=0"),
    "drop2d": (lambda: nn.Dropout2d(), "drop2d (Dropout2d) draws random numbers*remove it or set p=0"),
    "rrelu": (lambda: nn.RReLU(), "rrelu (RReLU) draws random numbers*use nn.LeakyReLU"),
    "lstm": (lambda: nn.LSTM(2, 2), "lstm (LSTM) is recurrent*build it from nn.Linear"),
    "cell": (lambda: nn.GRUCell(2, 2), "cell (GRUCell) is recurrent*build it from nn.Linear"),
    "lazy": (lambda: nn.LazyLinear(2), "lazy (LazyLinear) has no shape yet*run one batch through*"),
    "lazynorm": (
        lambda: nn.LazyBatchNorm2d(affine=False),
        "lazynorm (LazyBatchNorm2d) has no shape yet*run one batch through*",
    ),
    "sync": (lambda: nn.SyncBatchNorm(2), "sync (SyncBatchNorm) mixes processes*use nn.BatchNorm2d"),
    "instance": (
        lambda: nn.InstanceNorm2d(2, track_running_stats=True),
        "instance (InstanceNorm2d) keeps running statistics*set track_running_stats=False",
    ),
    "old": (old_weight_norm, "old (Linear) computes its weights from others*remove its parametrizations"),
    "new": (
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)),
        "new (ParametrizedLinear) computes its weights from others*remove its parametrizations",
    ),
    "complex": (Complex, "complex (Complex) has phase of torch.complex64*make it float32"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_layer_that_cannot_be_voted_on_is_named_with_its_fix(name: str) -> None:
    make, pattern = BAD[name]
    found = problems(nn.ModuleDict({name: make(), "fine": nn.Linear(2, 2)}))
    assert len(found) == 1 and fnmatchcase(found[0], pattern)


def test_every_offending_layer_is_named_at_once() -> None:
    inner = nn.ModuleDict({name: make() for name, (make, _) in BAD.items()})
    with pytest.raises(ModelError) as refusal:
        Network(nn.Sequential(nn.Linear(2, 2), inner))
    start, *found = str(refusal.value).replace("vote: ", "vote; ", 1).split("; ")
    assert start.startswith(f"{len(BAD)} layer(s) cannot be trained by vote")
    for sentence, (_, pattern) in zip(found, BAD.values(), strict=True):
        assert fnmatchcase(sentence, f"1.{pattern}*")


def test_a_network_that_is_an_offending_layer_itself_is_named() -> None:
    assert problems(nn.LSTM(2, 2)) == [
        "the network itself (LSTM) is recurrent and cannot be stacked: build it from nn.Linear"
    ]


@pytest.mark.parametrize(
    "layer",
    [nn.Dropout(0.0), nn.InstanceNorm2d(2), nn.GroupNorm(1, 2), nn.LeakyReLU(), nn.BatchNorm3d(2), nn.PReLU()],
    ids=repr,
)
def test_a_layer_that_can_be_stacked_is_not_refused(layer: nn.Module) -> None:
    assert problems(nn.Sequential(nn.Linear(2, 2), layer)) == []


# The trial run


@every_case
def test_a_network_that_fits_the_data_passes_its_trial(case: Case) -> None:
    case.network().check(case.shape, 3)


def test_a_wrong_input_size_is_refused_naming_the_layer() -> None:
    network = CASES["conv2d"].network()
    with pytest.raises(ModelError, match=r"fails at layer '6' on inputs of shape \(1, 12, 12\)"):
        network.check((1, 12, 12), 3)
    with pytest.raises(ModelError, match=r"fails at layer '0' on inputs of shape \(3, 8, 8\)"):
        network.check((3, 8, 8), 3)


@pytest.mark.parametrize("norm", [nn.BatchNorm2d(5), nn.BatchNorm1d(4)], ids=repr)
def test_a_batch_norm_that_does_not_fit_is_refused(norm: nn.Module) -> None:
    network = Network(nn.Sequential(nn.Conv2d(1, 4, 3), norm, nn.Flatten(), nn.Linear(144, 3)))
    with pytest.raises(ModelError, match="fails at layer '1'"):
        network.check((1, 8, 8), 3)


def test_a_wrong_number_of_classes_is_refused_naming_both() -> None:
    with pytest.raises(ModelError, match=r"outputs of shape \(3,\).*the data has 10 classes.*last layer"):
        CASES["conv2d"].network().check((1, 8, 8), 10)


class Forward(nn.Module):
    """Two layers, and whatever is done to their output."""

    def __init__(self, then: Callable[[Tensor], object]) -> None:
        super().__init__()
        self.layers, self.then = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), then

    def forward(self, x: Tensor) -> object:
        return self.then(self.layers(x))


def fails_without_a_word(y: Tensor) -> Tensor:
    raise AssertionError


@pytest.mark.parametrize(
    ("then", "saying"),
    [
        (lambda y: F.dropout(y, 0.5), "random"),
        (lambda y: y if y.sum() > 0 else -y, "data-dependent control flow|item"),
        (lambda y: y[:, 7], "index 7 is out of bounds"),
        (fails_without_a_word, "AssertionError"),
        (lambda y: (y, y), r"gives a tuple .* expected \(3,\)"),
    ],
    ids=["functional dropout", "control flow", "index", "no message", "two outputs"],
)
def test_a_forward_that_cannot_be_stacked_is_refused(then: Callable[[Tensor], object], saying: str) -> None:
    with pytest.raises(ModelError, match=saying):
        Network(Forward(then)).check((4,), 3)


class Reused(nn.Module):
    """One batch norm at two places: there would be statistics for the second alone."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.norm, self.out = nn.Linear(4, 4), nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.out(self.norm(self.b(self.norm(self.a(x)))))
        return out


def test_a_batch_norm_that_runs_twice_is_refused() -> None:
    with pytest.raises(ModelError, match="batch norm norm runs more than once"):
        Network(Reused()).check((4,), 3)


# Calibration and deployment


def calibrated_on(case: Case, count: int = 7) -> tuple[Network, Weights, Tensor, State]:
    network, x = case.network(), normal(count, *case.shape, seed=8) * 3 + 1
    weights = some_weights(network)
    return network, weights, x, network.calibrate(weights, x)


@every_case_with_norm
def test_calibration_measures_what_torch_measures(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    module = as_torch_runs_it(case, network, weights)
    module(x)
    expected = {name: value for name, value in module.named_buffers()}
    assert statistics.keys() == expected.keys()
    for name, value in statistics.items():
        torch.testing.assert_close(value, expected[name])


@every_case_with_norm
def test_calibration_forgets_what_it_measured_before(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    first = {name: value.clone() for name, value in statistics.items()}
    other = network.calibrate(weights, 100 * x + 7)
    again = network.calibrate(weights, x)
    for name, value in first.items():
        assert torch.equal(statistics[name], value) and torch.equal(again[name], value)
        assert "num" in name or not torch.equal(other[name], value)


@every_case_with_norm
def test_a_calibrated_network_differs_from_the_batch_by_the_unbiased_variance_only(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    values: dict[str, int] = {}  # how many each channel's variance is of
    module = as_torch_runs_it(case, network, weights)
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm):
            layer.register_forward_pre_hook(lambda m, a, n=name: values.update({n: a[0][:, 0].numel()}))
    by_batch = module(x)
    biased = {
        name: value * (1 - 1 / values[name.removesuffix(".running_var")]) if name.endswith("running_var") else value
        for name, value in statistics.items()
    }
    torch.testing.assert_close(network.calibrated(weights, biased, x), by_batch, atol=1e-4, rtol=1e-4)


def test_the_same_batch_norm_in_two_slots_has_statistics_for_each() -> None:
    norm = nn.BatchNorm1d(4)
    network = Network(nn.Sequential(nn.Linear(4, 4), norm, nn.Linear(4, 4), norm, nn.Linear(4, 3)))
    network.check((4,), 3)
    assert [slot.name for slot in network.floats] == ["0.bias", "2.bias", "4.weight", "4.bias"]
    weights, x = some_weights(network), normal(4096, 4)
    statistics = network.calibrate(weights, x)
    assert {"1.running_mean", "3.running_mean"} < statistics.keys()
    expected = network(weights.voted, weights.floats, x)
    torch.testing.assert_close(network.calibrated(weights, statistics, x), expected, atol=0.01, rtol=0.01)


class PlainNorm(nn.BatchNorm1d):
    def __init__(self, width: int) -> None:
        super().__init__(width)


def test_a_subclass_of_batch_norm_is_a_batch_norm() -> None:
    network = Network(nn.Sequential(nn.Linear(4, 4), PlainNorm(4), nn.Linear(4, 3)))
    network.check((4,), 3)
    assert network.calibrate(network.start, normal(8, 4)).keys() == {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    }


@every_case
def test_the_module_handed_out_computes_what_the_calibrated_network_does(case: Case) -> None:
    network, weights, x, statistics = calibrated_on(case)
    module = network.module(weights, statistics)
    expected = network.calibrated(weights, statistics, x)
    torch.testing.assert_close(module(x), expected)
    one_by_one = torch.cat([module(x[i : i + 1]) for i in range(len(x))])
    torch.testing.assert_close(one_by_one, expected, atol=1e-4, rtol=1e-4)


@every_case
def test_the_module_handed_out_is_an_ordinary_module_with_votes_for_weights(case: Case) -> None:
    network = case.network()
    votes_D = torch.where(normal(network.D) > 0, 1, -1).to(torch.int8)
    weights = Weights(votes_D, network.start.floats)
    module = network.module(
        weights, network.calibrate(Weights(votes_D.float(), network.start.floats), normal(4, *case.shape))
    )
    assert type(module) is type(case.make())
    assert not any(layer.training or isinstance(layer, StaticBatchNorm) for layer in module.modules())
    assert not any(p.requires_grad for p in module.parameters())
    assert {n for n, _ in module.named_parameters()} == {slot.name for slot in (*network.voted, *network.floats)}
    for slot in network.voted:
        weight = module.get_parameter(slot.name)
        assert weight.dtype == torch.float32 and set(weight.flatten().tolist()) <= {-1.0, 1.0}
    flat = torch.cat([module.get_parameter(slot.name).flatten() for slot in network.voted])
    assert torch.equal(flat, votes_D.float())


def test_the_module_handed_out_is_the_callers_to_change() -> None:
    network, weights, x, statistics = calibrated_on(CASES["conv2d"])
    expected = network.calibrated(weights, statistics, x)
    before = weights.voted.clone()
    module = network.module(weights, statistics)
    for parameter in network.module(weights, statistics).parameters():
        parameter.zero_()
    torch.testing.assert_close(module(x), expected)
    assert torch.equal(weights.voted, before)
    assert torch.equal(network.calibrated(weights, statistics, x), expected)
