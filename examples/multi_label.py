"""Multi-label: four properties of a handwritten digit, each of which an image has or has not.

fedvote run quickstart --set data=examples/multi_label.py:properties
"""

from __future__ import annotations

import torch

import fedvote
from fedvote import data as datasets
from fedvote.models.digits_cnn import digits_cnn

PROPERTIES = {"even": (0, 2, 4, 6, 8), "prime": (2, 3, 5, 7), "has a loop": (0, 6, 8, 9), "below five": (0, 1, 2, 3, 4)}


def properties() -> fedvote.Dataset:
    digits = datasets.load("digits")

    def labels(examples: fedvote.Examples) -> torch.Tensor:
        return torch.stack([torch.isin(examples.y, torch.tensor(having)) for having in PROPERTIES.values()], 1)

    return fedvote.from_arrays(
        digits.train.x, labels(digits.train), digits.test.x, labels(digits.test),
        task="multi-label", classes=list(PROPERTIES), mean=digits.train.mean, std=digits.train.std, name="properties",
    )  # fmt: skip


if __name__ == "__main__":
    data = properties()
    for snapshot in fedvote.simulate(digits_cnn(data.shape, 4), data, clients=5, rounds=8, steps=20):
        print(f"round {snapshot.round}: f1 {snapshot.record['f1']:.3f}")
