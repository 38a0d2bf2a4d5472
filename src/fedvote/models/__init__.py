"""Networks by name: functions that make an nn.Module from the shape of one input and the number of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from fedvote import contracts
from fedvote.errors import ConfigError, reason
from fedvote.models.digits_cnn import digits_cnn
from fedvote.models.lenet5 import lenet5
from fedvote.models.mlp import mlp
from fedvote.models.resnet20 import resnet20
from fedvote.models.small_cnn import small_cnn
from fedvote.models.vgg7 import vgg7
from fedvote.models.wide_resnet import wrn20_4
from fedvote.randomness import Key
from fedvote.registry import find

MODELS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "digits-cnn": digits_cnn,
    "lenet5": lenet5,
    "mlp": mlp,
    "small-cnn": small_cnn,
    "vgg7": vgg7,
    "resnet20": resnet20,
    "wrn20-4": wrn20_4,
}


def make_model(name: str, shape: Sequence[int], classes: int, seed: int = 0) -> nn.Module:
    """The network of this name, or a user's own from FILE.py:NAME, for inputs of this shape.

    `seed`: of the random numbers that the function draws, such as a random buffer: the same on all machines.
    """
    make = find(MODELS, name, "model")
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(Key(seed).number("model"))
            module = make(tuple(shape), classes)
    except Exception as error:
        raise ConfigError(
            f"model {name!r} could not be made for inputs of shape {tuple(shape)} and {classes} classes "
            f"({reason(error)}); expected a function of shape and classes that returns an nn.Module"
        ) from error
    if not isinstance(module, nn.Module):
        raise ConfigError(f"model {name!r} returned {contracts.kind(module)}, expected an nn.Module")
    return module
