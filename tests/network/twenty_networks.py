"""Twenty networks against three methods: each trains above a stated accuracy, or is refused and its fix works."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedvote import FedAvg, FedPAQ, FedVote, simulate
from fedvote.core import Dataset, Examples
from fedvote.errors import ModelError
from fedvote.method import Method
from fedvote.randomness import Key
from fedvote.runs.environment import environment

CLASSES, EXAMPLES = 3, 360
ABOVE = {"FedVote": 0.6, "FedAvg": 0.85, "FedPAQ": 0.8}  # accuracy of the deployed network; guessing has 0.33
SETTING: dict[str, Any] = {
    "clients": 5, "rounds": 5, "steps": 12, "batch": 32, "partition": "iid", "evaluate_every": 5,
}  # fmt: skip
METHODS: dict[str, Method] = {
    "FedVote": FedVote(lr=0.1, coding="plain"),
    "FedAvg": FedAvg(lr=0.01),
    "FedPAQ": FedPAQ(lr=0.01, bucket=64, coding="plain"),
}


def data(shape: tuple[int, ...], tokens: bool = False) -> Dataset:
    """Noisy copies of three random inputs; `tokens`: sequences of whole numbers below 8, of three kinds."""
    generator = Key(0).torch("networks")
    y = torch.arange(EXAMPLES) % CLASSES
    if tokens:
        x = (torch.randint(0, 4, (EXAMPLES, *shape), generator=generator) + 2 * y[:, None]).float()
    else:
        centres = torch.randn((CLASSES, *shape), generator=generator)
        x = centres[y] + torch.randn((EXAMPLES, *shape), generator=generator)
    return Dataset("networks", Examples(x[60:], y[60:]), Examples(x[:60], y[:60]), tuple("abc"))


class Net(nn.Module):
    """Layers by name, in this order of registration, and a forward pass over them."""

    def __init__(self, forward: Callable[[Any, Tensor], object], **layers: nn.Module) -> None:
        super().__init__()
        self.run = forward
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: Tensor) -> object:
        return self.run(self, x)


def resnet() -> nn.Module:
    def block() -> nn.Module:
        return nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))

    return Net(
        lambda m, x: m.head((m.stem(x) + m.block(m.stem(x).relu())).relu().mean((2, 3))),
        stem=nn.Conv2d(3, 8, 5, stride=4), block=block(), head=nn.Linear(8, CLASSES),
    )  # fmt: skip


def recurrent(kind: type[nn.LSTM] | type[nn.GRU]) -> nn.Module:
    return Net(
        lambda m, x: m.head(m.recurrent(x)[0][:, -1]), recurrent=kind(6, 12, batch_first=True),
        head=nn.Linear(12, CLASSES),
    )  # fmt: skip


def attention() -> nn.Module:
    def forward(m: Any, x: Tensor) -> object:
        x = m.norm(m.embed(x))
        return m.head((x + m.out_norm(m.attention(x, x, x, need_weights=False)[0])).mean(1))

    return Net(
        forward, embed=nn.Linear(6, 8), norm=nn.LayerNorm(8), out_norm=nn.LayerNorm(8),
        attention=nn.MultiheadAttention(8, 2, batch_first=True), head=nn.Linear(8, CLASSES),
    )  # fmt: skip


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return Net(
        lambda m, x: m.head(m.encoder(m.embed(x)).mean(1)), embed=nn.Linear(6, 8),
        encoder=nn.TransformerEncoder(layer, 1), head=nn.Linear(8, CLASSES),
    )  # fmt: skip


def embedding(tied: bool = False) -> nn.Module:
    made: Any = Net(
        lambda m, x: m.head(m.body(m.embed(x.long()).flatten(1)).relu())[:, :CLASSES], embed=nn.Embedding(10, 8),
        body=nn.Linear(48, 8), head=nn.Linear(8, 10, bias=False),
    )  # fmt: skip
    if tied:
        made.head.weight = made.embed.weight
    return made  # type: ignore[no-any-return]


def two_outputs(first: bool = False) -> nn.Module:
    return Net(
        lambda m, x: m.a(m.body(x).relu()) if first else (m.a(m.body(x).relu()), m.b(m.body(x).relu())),
        body=nn.Linear(16, 16), a=nn.Linear(16, CLASSES), b=nn.Linear(16, 2),
    )  # fmt: skip


def flat(*layers: nn.Module, width: int) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, CLASSES))


@dataclass(frozen=True)
class Case:
    make: Callable[[], nn.Module]
    shape: tuple[int, ...] = (16,)
    tokens: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # for FedVote, after a refusal or from the start
    refused: str = ""  # a part of the sentence
    fixed: Callable[[], nn.Module] | None = None  # the network after the sentence's fix
    by: Sequence[str] = ("FedVote",)  # methods that refuse it


CASES: dict[str, Case] = {
    "MLP": Case(lambda: nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, CLASSES))),
    "LeNet": Case(
        lambda: flat(
            nn.Conv2d(1, 6, 3),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 3),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            width=16,
        ),
        (1, 8, 8),
    ),
    "ResNet, 17 x 23 RGB": Case(resnet, (3, 17, 23)),
    "depthwise": Case(lambda: flat(nn.Conv2d(4, 4, 3, groups=4), nn.Conv2d(4, 8, 1), nn.ReLU(), width=128), (4, 6, 6)),
    "GroupNorm": Case(lambda: flat(nn.Conv2d(2, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), width=128), (2, 6, 6)),
    "LayerNorm": Case(lambda: nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, CLASSES))),
    "BatchNorm1d": Case(
        lambda: nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, CLASSES))
    ),
    "Conv1d": Case(lambda: flat(nn.Conv1d(2, 8, 3), nn.ReLU(), width=80), (2, 12)),
    "Conv3d": Case(lambda: flat(nn.Conv3d(1, 6, 2), nn.ReLU(), width=162), (1, 4, 4, 4)),
    "transposed": Case(
        lambda: flat(nn.ConvTranspose2d(2, 8, 2, stride=2), nn.BatchNorm2d(8), nn.ReLU(), width=288), (2, 3, 3)
    ),
    "embedding": Case(embedding, (6,), tokens=True),
    "LSTM": Case(lambda: recurrent(nn.LSTM), (5, 6), options={"vote": ["recurrent"]}, refused="no weights to vote on"),
    "GRU": Case(lambda: recurrent(nn.GRU), (5, 6), options={"vote": ["recurrent"]}, refused="no weights to vote on"),
    "attention block": Case(attention, (5, 6), options={"vote": ["attention.in_proj_weight"]}),
    "transformer encoder with dropout": Case(encoder, (5, 6)),
    "tied weights": Case(
        lambda: embedding(tied=True),
        (6,),
        tokens=True,
        options={"keep_float": ["head"]},
        refused="head, shares its weight with embed",
    ),
    "head registered first": Case(
        lambda: Net(lambda m, x: m.head(m.body(x).relu()), head=nn.Linear(16, CLASSES), body=nn.Linear(16, 16))
    ),
    "no linear at the end": Case(
        lambda: nn.Sequential(nn.Conv2d(2, 8, 3), nn.ReLU(), nn.Conv2d(8, CLASSES, 4), nn.Flatten()), (2, 6, 6)
    ),
    "single linear": Case(lambda: nn.Linear(16, CLASSES), options={"keep_float": []}, refused="no weights to vote on"),
    "two outputs": Case(
        two_outputs, refused="gives 2 outputs as a tuple", fixed=lambda: two_outputs(first=True), by=tuple(METHODS)
    ),
}


def accuracy(case: Case, method: str, make: Callable[[], nn.Module], options: dict[str, Any], seed: int) -> float:
    """The deployed network's after five rounds of five clients."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        module = make()
    run = simulate(
        module, data(case.shape, case.tokens), METHODS[method], device="cpu", seed=seed, **SETTING, **options
    )
    *_, last = run
    return float(last.record["accuracy"])


def outcome(name: str, method: str, seed: int = 0) -> tuple[float, str]:
    """The accuracy, and the sentence of the refusal before its fix, if there was one."""
    case, sentence = CASES[name], ""
    make, options = case.make, {} if case.refused or method != "FedVote" else case.options
    if case.refused and method in case.by:
        try:
            accuracy(case, method, make, {}, seed)
        except ModelError as error:
            sentence = str(error)
        make, options = case.fixed or case.make, case.options if method == "FedVote" else {}
    return accuracy(case, method, make, options, seed), sentence


def row(name: str) -> str:
    """The network's row of the table in docs/networks.md."""
    case, cells = CASES[name], []
    fix = ", ".join(f"`{key}={value}`" for key, value in case.options.items()).replace("'", '"')
    for method in METHODS:
        if case.refused and method in case.by:
            cells.append(f"refused; trains with {fix or 'one output'}")
        else:
            cells.append(f"trains with {fix}" if fix and method == "FedVote" and not case.refused else "trains")
    return f"| {name} | {' | '.join(cells)} |"


def table() -> str:
    head = f"| network | {' | '.join(METHODS)} |", "|---|" + "---|" * len(METHODS)
    return "\n".join([*head, *map(row, CASES)])


def measure(seeds: Sequence[int]) -> dict[str, Any]:
    """The accuracy of every network by method and seed: the test has seed 0, by which all thresholds were chosen."""
    found = {name: {m: [outcome(name, m, seed)[0] for seed in seeds] for m in METHODS} for name in CASES}
    command = "python -m tests.network.twenty_networks results/networks.json"
    made = {"command": command, "config": SETTING, "seeds": list(seeds)}
    return {**made, "environment": environment(torch.device("cpu")), "above": ABOVE, "accuracy": found}


if __name__ == "__main__":
    print(table())
    for file in sys.argv[1:]:  # such as results/networks.json
        Path(file).write_text(json.dumps(measure([0, 1, 2])) + "\n")
