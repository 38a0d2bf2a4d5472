"""A network computes what the module computes, for one client or a stack."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.func import vmap
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.network.network import Network
from tests.network.cases import CASES, Case, as_torch_runs_it, every_case, every_case_with_norm, normal, some_weights


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
