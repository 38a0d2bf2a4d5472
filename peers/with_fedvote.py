"""The job in fedvote's simulator. Its `seconds_training` of a round excludes evaluation."""

from __future__ import annotations

import recipe
import torch

import fedvote
from fedvote.core import Dataset, Examples
from fedvote.engines.simulate import simulate
from fedvote.methods import FedAvg
from fedvote.models import MODELS


def main() -> None:
    options = recipe.arguments(
        stack={"type": int, "default": 0, "help": "clients trained at once; 0: as fedvote chooses"},
        precision={"default": "auto"},
        compile={"action": "store_true"},
    )
    x, y, name = recipe.images()
    train = Examples(x, y, mean=recipe.MEAN, std=recipe.STD)
    data = Dataset(name, train, train.rows(slice(0, 100)), tuple(map(str, range(recipe.CLASSES))))
    simulation = simulate(
        MODELS["small-cnn"](recipe.SHAPE, recipe.CLASSES),
        data,
        FedAvg(lr=recipe.LR, optimizer="SGD"),
        clients=recipe.CLIENTS,
        cohort=recipe.COHORT,
        owned=torch.arange(len(train)).split(recipe.EACH),
        rounds=options.warm_up + options.rounds,
        steps=recipe.STEPS,
        batch=recipe.BATCH,
        device=options.device,
        precision=options.precision,
        stack=options.stack,
        compile=options.compile,
        test_batch=100,
        calibrate_on=100,
    )
    seconds = [snapshot.record["seconds_training"] for snapshot in simulation.run()]
    how = {"stack": options.stack, "precision": options.precision, "compile": options.compile}
    recipe.report("fedvote", fedvote.__version__, options, seconds, processes=1, **how)


if __name__ == "__main__":
    main()
