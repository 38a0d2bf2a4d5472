"""Signs up, the majority's sign down, on three weights."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
import torch

from fedvote.core import Batches, Examples, State
from fedvote.errors import ConfigError
from fedvote.methods import SignSGD
from fedvote.randomness import Key
from tests.toy import Federation, batches, keys, merge, three_weights


def moved(signs: Sequence[Sequence[int]], server_lr: float) -> list[float]:
    """By how much each of three voted and two float weights moves."""
    method, network = SignSGD(server_lr=server_lr), three_weights()
    state: State = method.init(network, len(signs))
    merged = merge(method, state, {"signs": torch.tensor(signs, dtype=torch.int8)}, range(len(signs)), Key(0, 1))
    return [*(merged["voted"] - state["voted"]).tolist(), *(merged["float"] - state["float"]).tolist()]


def test_every_weight_moves_by_the_servers_step_against_the_majority() -> None:
    signs = [[1, 1, -1, -1, 1], [1, -1, -1, -1, 1], [1, 1, -1, 1, -1]]
    assert moved(signs, 0.25) == pytest.approx([-0.25, -0.25, 0.25, 0.25, -0.25])


def test_a_weight_on_which_clients_are_tied_stays() -> None:
    assert moved([[1, 1, -1, -1, 1], [1, -1, -1, 1, -1]], 0.5) == pytest.approx([-0.5, 0, 0.5, 0, 0])


def test_many_signs_do_not_overflow() -> None:
    signs = [[1, -1, 1, 1, -1]] * 200  # 200 as one byte is -56
    assert moved(signs, 0.5) == pytest.approx([-0.5, 0.5, -0.5, -0.5, 0.5])


def test_after_one_step_the_sign_is_that_of_the_gradient() -> None:
    method = SignSGD(lr=0.5, optimizer="SGD")
    federation = Federation(method)
    network, turn = federation.network, batches(federation.data, (0, 3), steps=1)
    up, _ = method.local(network, federation.start(), turn, {}, keys((0, 3)))
    x_KB, y_KB = turn.at(0)
    for k in range(2):
        voted, floats = (start.clone().requires_grad_() for start in (network.start.voted, network.start.floats))
        loss = torch.nn.functional.cross_entropy(network(voted, floats, x_KB[k]), y_KB[k])
        gradient = torch.cat(torch.autograd.grad(loss, (voted, floats)))
        assert torch.equal(up["signs"][k].float(), torch.where(gradient >= 0, 1.0, -1.0))


def test_the_sign_of_an_update_of_zero_is_plus() -> None:
    method, network = SignSGD(), three_weights()
    nothing = Examples(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64))  # no inputs, no gradients
    turn = Batches(nothing, torch.zeros(1, 2, 2, dtype=torch.int64), torch.tensor([2]))
    up, _ = method.local(network, method.init(network, 1), turn, {}, keys([0]))
    assert up["signs"].tolist() == [[1, 1, 1, 1, 1]]


def test_after_many_steps_the_sign_is_that_of_the_whole_way() -> None:
    method = SignSGD(lr=0.01)
    federation = Federation(method)
    turn = batches(federation.data, (2,), steps=10)
    up, _ = method.local(federation.network, federation.start(), turn, {}, keys((2,)))
    assert torch.equal(up["signs"].float(), method.update(federation.network, federation.start(), turn).sign())


def test_a_sign_is_one_bit() -> None:
    federation = Federation(SignSGD())
    _, frames = federation.frames(federation.start(), 1, [0])
    assert len(frames[0]) == 39 + (9 + -(-(federation.network.D + federation.network.F) // 8)) + 4


@pytest.mark.parametrize("server_lr", [0.0, -1.0, float("inf"), float("nan")])
def test_a_step_that_is_none_is_refused(server_lr: float) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"server_lr is {server_lr}, expected a finite number above 0")):
        SignSGD(server_lr=server_lr)
