"""The rotation by explicit matrices, no bias, and the error that the papers prove."""

from __future__ import annotations

import math
import re

import pytest
import torch
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.methods import Eden
from fedvote.methods.eden import compress, hadamard, random_signs, restore
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import Federation, batches, keys, module


def noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=Key(0).torch("noise"))


def matrix(size: int) -> Tensor:
    """H_ij = (-1)^(bits that i and j have in common) / sqrt(size), in float64."""
    entries = [[(-1) ** (i & j).bit_count() for j in range(size)] for i in range(size)]
    return torch.tensor(entries, dtype=torch.float64) / math.sqrt(size)


def estimates(x_D: Tensor, rotations: int) -> Tensor:
    """What the server makes of x, by so many rotations: blocks of one message are rotated independently."""
    key = Key(0, 1, 2)
    return restore(*compress(x_D.expand(rotations, -1), key), key)


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_transform_is_the_hadamard_matrix(size: int) -> None:
    x = noise(3, size)
    torch.testing.assert_close(hadamard(x).double(), x.double() @ matrix(size), rtol=0, atol=1e-5)


def test_the_transform_of_three_weights_by_hand() -> None:
    assert hadamard(torch.tensor([1.0, 2.0, 3.0, 0.0])).tolist() == [3, 1, 0, -2]


def test_the_transform_keeps_lengths_and_undoes_itself() -> None:
    x = noise(2, 2**15)
    assert float(hadamard(x).norm()) == pytest.approx(float(x.norm()), rel=1e-5)
    torch.testing.assert_close(hadamard(hadamard(x)), x, rtol=0, atol=1e-4)


def test_a_message_and_what_it_stands_for_by_explicit_matrices() -> None:
    x, key = noise(3, 16), Key(5, 2, 7)
    signs, scale = compress(x, key)
    found = restore(signs, scale, key)
    diagonal = random_signs(x, key).double()
    for block in range(3):
        rotation = matrix(16) @ torch.diag(diagonal[block])
        rotated = rotation @ x[block].double()
        assert signs[block].tolist() == [1 if value >= 0 else -1 for value in rotated.tolist()]
        length = sum(value**2 for value in x[block].tolist()) / sum(abs(value) for value in rotated.tolist())
        assert float(scale[block]) == pytest.approx(length, rel=1e-5)
        back = torch.linalg.inv(rotation) @ (length * signs[block].double())
        torch.testing.assert_close(found[block].double(), back, rtol=0, atol=1e-5)


def test_along_the_update_every_estimate_has_the_right_length() -> None:
    x = noise(64)
    torch.testing.assert_close(estimates(x, 20) @ x, x.square().sum().expand(20), rtol=1e-4, atol=0)


def test_the_scale_leaves_no_bias_over_uniform_rotations() -> None:
    x, draws = torch.tensor([3.0, -1.0, 0.5, 0.0], dtype=torch.float64), 20_000
    rotation, triangle = torch.linalg.qr(torch.randn(draws, 4, 4, dtype=torch.float64, generator=Key(0).torch("test")))
    rotation = rotation * triangle.diagonal(dim1=1, dim2=2).sign()[:, None]  # uniform, not as the algorithm left it
    rotated = rotation @ x
    scale = x.square().sum() / rotated.abs().sum(1, keepdim=True)
    restored = (rotation.mT @ (scale * rotated.sign())[..., None])[..., 0]
    torch.testing.assert_close(restored.mean(0), x, rtol=0, atol=4 * float(restored.std(0).max()) / draws**0.5)


def test_the_estimate_has_no_bias_over_rotations() -> None:
    x, rotations = noise(4096), 300
    found = estimates(x, rotations)
    # were there a bias, the error of the mean would be more than that of one estimate over their number
    each = float((found - x).square().sum(1).mean())
    assert float((found.mean(0) - x).square().sum()) == pytest.approx(each / rotations, rel=0.1)


@pytest.mark.parametrize("power", [1, 5], ids=["normal", "heavy tails"])
def test_the_error_of_a_long_vector_is_the_papers(power: int) -> None:
    """DRIVE: E ||x' - x||^2 / ||x||^2 -> pi / 2 - 1 as d grows, whatever x is."""
    x = noise(2**14) ** power
    error = (estimates(x, 20) - x).square().sum(1).mean() / x.square().sum()
    assert float(error) == pytest.approx(math.pi / 2 - 1, rel=0.02)


def test_a_single_weight_that_changed_is_restored_exactly() -> None:
    x = torch.zeros(64)
    x[5] = -3.0
    torch.testing.assert_close(estimates(x, 4), x.expand(4, -1))


def test_an_update_of_zero_is_zero() -> None:
    assert not estimates(torch.zeros(8), 2).any()


def test_every_client_and_round_has_a_rotation_of_its_own() -> None:
    drawn = [random_signs(torch.zeros(4, 256), Key(*key)) for key in [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 1, 0)]]
    flat = torch.stack([signs.flatten() for signs in drawn])
    assert set(flat.unique().tolist()) == {-1.0, 1.0}
    agreement = (flat @ flat.T - 1024 * torch.eye(4)).abs()
    assert float(agreement.max()) < 4 * 32
    assert torch.equal(drawn[0], random_signs(torch.zeros(4, 256), Key(0, 1, 0)))


@pytest.mark.parametrize("block", [16, 128, 8192])
def test_the_server_averages_what_clients_mean_and_subtracts_it(block: int) -> None:
    method = Eden(block=block)
    federation = Federation(method, seed=7)
    network, cohort = federation.network, (1, 4)
    turn = batches(federation.data, cohort, steps=federation.steps)
    size, length = network.D + network.F, min(block, 128)
    expected = torch.zeros(size)
    for update, key in zip(method.update(network, federation.start(), turn), keys(cohort, seed=7), strict=True):
        blocks = torch.cat([update, torch.zeros(-size % length)]).view(-1, length)
        expected += restore(*compress(blocks, key), key).flatten()[:size] / 2
    state = federation.states([cohort])[-1]
    torch.testing.assert_close(state["voted"], network.start.voted - expected[: network.D])
    torch.testing.assert_close(state["float"], network.start.floats - expected[network.D :])


@pytest.mark.parametrize(("block", "blocks", "length"), [(8192, 1, 128), (128, 1, 128), (64, 2, 64), (8, 14, 8)])
def test_a_weight_is_one_bit_and_a_block_four_bytes_more(block: int, blocks: int, length: int) -> None:
    network = Network(module())
    assert network.D + network.F == 111
    federation = Federation(Eden(block=block), network)
    _, frames = federation.frames(federation.start(), 1, [0])
    assert len(frames[0]) == 39 + (9 + blocks * length // 8) + (9 + 4 * blocks) + 4


@pytest.mark.parametrize("block", [0, -8, 4, 100])
def test_blocks_that_cannot_be_transformed_are_refused(block: int) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"block is {block}, expected a power of two, 8 or more")):
        Eden(block=block)
