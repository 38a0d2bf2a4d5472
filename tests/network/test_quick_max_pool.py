"""Max pools without gradients give the bits of torch's own kernel, whatever their shape and settings."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedvote.network import quick_max_pool as quick
from fedvote.network.network import Network

SHAPES = [(2, 3, 8, 6), (2, 3, 7, 5), (1, 1, 2, 2), (3, 1, 4, 9), (1, 4, 3, 2), (3, 6, 6), (0, 2, 4, 4)]
OTHERS: list[dict[str, Any]] = [
    {"kernel_size": 3},
    {"kernel_size": 2, "stride": 1},
    {"kernel_size": (2, 3)},
    {"kernel_size": 2, "padding": 1},
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 2, "ceil_mode": True},
]


def images(*shape: int) -> Tensor:
    """Images with many equal values, negative ones, zeros, infinities and NaN."""
    values = torch.tensor([-math.inf, -2.0, -1.0, 0.0, 0.0, 1.0, 1.5, math.inf, math.nan])
    return values[torch.randint(len(values), shape, generator=torch.Generator().manual_seed(0))]


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have one layout and the same bits, those of NaN apart."""
    bits_a, bits_b = (x.nan_to_num(7.0, math.inf, -math.inf).view(torch.int32) for x in (a, b))
    return a.stride() == b.stride() and torch.equal(bits_a, bits_b) and torch.equal(a.isnan(), b.isnan())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kernel", [2, (2, 2), [2, 2]])
def test_squares_of_two_have_the_bits_and_the_layout_of_torchs_kernel(shape: tuple[int, ...], kernel: Any) -> None:
    x = images(*shape)
    with quick.QuickMaxPool():
        found = [F.max_pool2d(x, kernel), F.max_pool2d(input=x, kernel_size=kernel), torch.max_pool2d(x, kernel, 2)]
    assert all(same_bits(each, F.max_pool2d(x, kernel)) for each in found)


@pytest.mark.parametrize("options", OTHERS)
def test_other_pools_stay_as_they_are(options: dict[str, Any]) -> None:
    x = images(2, 3, 8, 8)
    assert not quick.is_2x2(x, **options)
    with quick.QuickMaxPool():
        found = F.max_pool2d(x, **options)
    assert same_bits(found, F.max_pool2d(x, **options))


def test_indices_and_images_by_pixel_come_from_torchs_kernel() -> None:
    x = images(2, 3, 8, 8)
    assert not quick.is_2x2(x.contiguous(memory_format=torch.channels_last), 2)
    assert not quick.is_2x2(x, 2, return_indices=True)
    with quick.QuickMaxPool():
        _, indices = F.max_pool2d(x, 2, return_indices=True)
    assert indices.dtype == torch.int64


def test_a_network_pools_quickly_without_gradients_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network(nn.Sequential(nn.Conv2d(1, 4, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 9, 3)))
    x, pooled = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(0)), list[Tensor]()

    def pool(image: Tensor) -> Tensor:
        pooled.append(image)
        return quick_pool(image)

    quick_pool = quick.maxima
    monkeypatch.setattr(quick, "maxima", pool)
    trained = network(network.start.voted, network.start.floats, x)
    assert not pooled
    with torch.no_grad():
        assert torch.equal(network(network.start.voted, network.start.floats, x), trained)
    assert pooled
