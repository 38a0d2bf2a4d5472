"""The float weights of FedVote: frozen, or trained at several rates, and rounded to a few levels on their way."""

from __future__ import annotations

from fedvote.studies.experiments.both_ways import both_ways
from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison

TRAINED = "method.train_float=true"
RATES = (0.0003, 0.001, 0.003, 0.01)
LEVELS = (127, 31, 7)  # at a rate of 0.003
FLOATS: dict[str, tuple[str, ...]] = {
    "frozen": (),
    **{f"{rate:g}": (TRAINED, f"method.float_lr={rate:g}") for rate in RATES},
    **{f"{levels} levels": (TRAINED, "method.float_lr=0.003", f"method.float_levels={levels}") for levels in LEVELS},
}


def float_weights(data: str, preset: str, *targets: float, **models: str) -> Comparison:
    cells = [
        Cell(name, preset, ("rounds=20", f"model.name={model}", *settings), label)
        for label, model in models.items()
        for name, settings in FLOATS.items()
    ]
    about = f"Float weights frozen, trained at a rate, or trained and sent in levels: {data}, 20 rounds"
    return Comparison(about, tuple(cells), both_ways(*targets), NOTE)


NOTE = "The float weights are the last layer's. Levels are those above zero of an update, at a rate of 0.003."
TRAIN_FLOAT_DIGITS = float_weights("digits among 11 clients", "quickstart", 0.9, 0.95, MLP="mlp", CNN="digits-cnn")
TRAIN_FLOAT_FASHION = float_weights("LeNet-5, Fashion-MNIST among 31 clients", "fashion-mnist", 0.85, LeNet5="lenet5")
TRAIN_FLOAT_CIFAR10 = float_weights("VGG-7, CIFAR-10 among 31 clients", "cifar10-silo", 0.75, VGG7="vgg7")
