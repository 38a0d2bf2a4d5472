"""Fine-tuning: train a network on one machine first, then go on in a federation, with float weights and with votes.

python examples/fine_tune.py
"""

from __future__ import annotations

import torch
from torch import nn

import fedvote
from fedvote.data import load

data = load("digits")
x, y = data.train.take(slice(None))


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip


def train(module: nn.Module, steps: int = 300) -> nn.Module:
    """Ordinary training on one machine: no federation in it."""
    optimizer = torch.optim.Adam(module.parameters(), 0.003)
    for _ in range(steps):
        index = torch.randint(0, len(x), (100,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x[index]), y[index]).backward()
        optimizer.step()
    return module


def final_accuracy(method: fedvote.FedAvg | fedvote.FedVote, start: str, rounds: int) -> float:
    """The deployed network's. start="given": from the module's weights; "seed": from new ones."""
    run = fedvote.simulate(pretrained, data, method, clients=11, rounds=rounds, steps=20, batch=50, start=start)
    *_, last = run
    return float(last.record["accuracy"])


torch.manual_seed(0)
pretrained = train(network())
print(fedvote.simulate(pretrained, data, clients=11, rounds=1).federation.summary())
print(f"FedAvg, one round at a small rate: {final_accuracy(fedvote.FedAvg(lr=1e-4), 'given', 1):.1%}")
print(f"FedVote from the trained network:  {final_accuracy(fedvote.FedVote(), 'given', 3):.1%}")
print(f"FedVote from the seed:             {final_accuracy(fedvote.FedVote(), 'seed', 3):.1%}")
