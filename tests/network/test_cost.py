"""The cost model, against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fedvote.errors import ConfigError, ModelError
from fedvote.models import make_model
from fedvote.network.cost import Cost, costs, parse_shape


def by_kind(module: nn.Module, shape: tuple[int, ...], classes: int, **how: list[str]) -> dict[str, Cost]:
    return {cost.weights: cost for cost in costs(module, shape, classes, **how)}


def test_a_small_network_by_hand() -> None:
    """2 x 5 x 5 -> convolution to 4 x 3 x 3, batch norm -> 36 -> 3 with bias."""
    layers = nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3)
    found = by_kind(nn.Sequential(*layers), (2, 5, 5), 3)
    outputs, conv, linear = 36, 36 * 18, 3 * 36
    additions = (conv - outputs) + outputs + linear  # a sum has one addition less than terms; norm and bias add one
    assert found["float"] == Cost("float", additions, conv + linear, 4 * (72 + 108 + 3))
    assert found["binary"] == Cost("binary", additions, outputs + linear, 9 + 4 * 111)  # the last layer is float
    assert found["ternary"] == Cost("ternary", additions, outputs + linear, 15 + 4 * 111)
    voted = by_kind(nn.Sequential(*layers), (2, 5, 5), 3, keep_float=[])["binary"]
    assert voted == Cost("binary", additions, outputs, -(-180 // 8) + 4 * 3)


def test_a_layer_that_runs_twice_costs_twice() -> None:
    shared = nn.Linear(6, 6, bias=False)
    found = by_kind(nn.Sequential(shared, nn.ReLU(), shared, nn.Linear(6, 2, bias=False)), (6,), 2)
    assert found["float"].multiplications == 2 * 36 + 12 and found["binary"].multiplications == 12
    assert found["float"].nbytes == 4 * (36 + 12)


def test_layers_that_share_a_weight_cost_each_and_products_of_no_layer_are_counted() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.again, self.last = (nn.Linear(8, n, bias=False) for n in (8, 8, 4))
            self.again.weight = self.first.weight

        def forward(self, x: Tensor) -> Tensor:
            x = self.again(torch.relu(self.first(x)))
            outer = x[:, :, None] @ x[:, None, :]  # 64 products of activations
            y: Tensor = self.last(outer.sum(1))
            return y

    found = by_kind(Tied(), (8,), 4)
    assert found["float"].multiplications == 64 + 64 + 64 + 32 and found["binary"].multiplications == 64 + 32


class Attention(nn.Module):
    """Of 5 places with 8 numbers each, by torch's module or by layers of its own."""

    def __init__(self, module: bool) -> None:
        super().__init__()
        self.whole = nn.MultiheadAttention(8, 2, batch_first=True, bias=False) if module else None
        self.three = None if module else nn.Linear(8, 24, bias=False)
        self.last = nn.Linear(8, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.whole is not None:
            x = self.whole(x, x, x, need_weights=False)[0]
        if self.three is not None:
            query, key, value = self.three(x).chunk(3, -1)
            x = nn.functional.scaled_dot_product_attention(query, key, value)
        y: Tensor = self.last(x.mean(1))
        return y


def test_the_products_of_attention_are_counted_as_those_of_floats() -> None:
    scores = values = 5 * 5 * 8
    found = by_kind(Attention(module=False), (5, 8), 4)
    assert found["float"].multiplications == 5 * 8 * 24 + scores + values + 8 * 4
    assert found["binary"].multiplications == scores + values + 8 * 4
    kept = by_kind(Attention(module=True), (5, 8), 4, keep_float=["whole.out_proj"])
    assert kept["float"].multiplications == 5 * 8 * 24 + scores + values + 5 * 8 * 8 + 8 * 4
    assert torch.backends.mha.get_fastpath_enabled() and torch.backends.cuda.flash_sdp_enabled()


def test_a_layer_of_votes_that_is_never_called_is_refused() -> None:
    with pytest.raises(ModelError, match=r"^whole\.out_proj is voted on but never called, .* or name it in keep_float"):
        costs(Attention(module=True), (5, 8), 4)
    assert torch.backends.mha.get_fastpath_enabled()


def test_the_papers_lenet() -> None:
    """Table III, 100 inputs of CIFAR-10: 1.8e9 multiplications and 8.1 mJ with float weights; 1.5 mJ with binary ones,
    which leaves out batch norm and the last layer."""
    found = by_kind(make_model("lenet5", (3, 32, 32), 10), (3, 32, 32), 10)
    assert 100 * found["float"].multiplications == pytest.approx(1.8e9, rel=0.03)
    assert 100 * found["float"].millijoules == pytest.approx(8.1, abs=0.05)
    assert 100 * found["binary"].millijoules == pytest.approx(1.5, abs=0.15)


def test_energy_prices_operations() -> None:
    assert Cost("float", 10**9, 0, 0).millijoules == pytest.approx(0.9)
    assert Cost("float", 0, 10**9, 0).millijoules == pytest.approx(3.7)
    row = Cost("float", 3, 5, 2_000_000).row(100)
    assert (row["additions"], row["multiplications"], row["megabytes"]) == (300, 500, 2)


@pytest.mark.parametrize("text", ["", "3x", "axb", "3x0", "-1", "3 x 3", "3.5"])
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected whole numbers above 0 as in 3x32x32"):
        parse_shape(text)
    assert parse_shape("3x32x32") == (3, 32, 32)


def test_a_network_that_does_not_fit_the_inputs_is_refused() -> None:
    with pytest.raises(ModelError, match="fails at layer '0' on inputs of shape"):
        costs(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), (3,), 2)
