"""The networks by name fit their data, whatever its size and number of classes, and refuse what is too small."""

from __future__ import annotations

import pytest
import torch

from fedvote.errors import ModelError
from fedvote.models import MODELS
from fedvote.network.network import Network
from fedvote.network.validate import problems
from fedvote.randomness import Key

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 9, 13)]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("classes", [2, 62])
def test_a_model_gives_a_score_a_class(name: str, shape: tuple[int, ...], classes: int) -> None:
    module = MODELS[name](shape, classes).train()
    x = torch.rand((2, *shape), generator=Key(0).torch("x"))
    assert module(x).shape == (2, classes)
    assert problems(module) == []


@pytest.mark.parametrize(
    ("name", "shape", "voted"),
    [
        ("digits-cnn", (1, 8, 8), 9 * 16 + 9 * 16 * 32 + 4 * 32 * 64),
        ("lenet5", (1, 28, 28), 1_657_632),
        ("lenet5", (3, 32, 32), 25 * 3 * 32 + 25 * 32 * 64 + 64 * 64 * 512),
    ],
)
def test_only_the_last_layer_is_float(name: str, shape: tuple[int, ...], voted: int) -> None:
    network = Network(MODELS[name](shape, 62))
    network.check(shape, 62)
    assert voted == network.D
    (last,) = network.floats
    assert last.shape[0] == 62 and last.size == network.F


@pytest.mark.parametrize(
    ("name", "pixels"), [("digits-cnn", 4), ("lenet5", 4), ("vgg7", 8)], ids=["digits-cnn", "lenet5", "vgg7"]
)
def test_too_small_an_image_is_refused(name: str, pixels: int) -> None:
    MODELS[name]((1, pixels, pixels), 10)
    for shape in ((1, pixels - 1, 28), (1, 28, pixels - 1), (28, 28), (64,), (1, 1, 28, 28)):
        with pytest.raises(ModelError, match=f"{name} takes images .* at least {pixels} pixels a side") as refusal:
            MODELS[name](shape, 10)
        assert str(shape) in str(refusal.value)
