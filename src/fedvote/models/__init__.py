"""Networks by name: functions from the shape of one input and the number of classes to an nn.Module."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from fedvote.models.digits_cnn import digits_cnn
from fedvote.models.lenet5 import lenet5
from fedvote.models.small_cnn import small_cnn
from fedvote.models.vgg7 import vgg7

MODELS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "digits-cnn": digits_cnn,
    "lenet5": lenet5,
    "small-cnn": small_cnn,
    "vgg7": vgg7,
}
