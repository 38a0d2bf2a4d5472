"""Binary and ternary networks (Table II)."""

from __future__ import annotations

from fedvote.studies.experiments.cells import Cell
from fedvote.studies.experiments.comparison import Comparison
from fedvote.studies.experiments.views import grid

PRINTED = {  # by preset and partition: binary, ternary
    ("fashion-mnist", "iid"): (91.1, 91.9),
    ("fashion-mnist", "dirichlet"): (88.3, 89.4),
    ("cifar10-silo", "iid"): (80.5, 82.5),
    ("cifar10-silo", "dirichlet"): (74.6, 77.6),
}
TABLE_2 = Comparison(
    "Table II: binary and ternary networks, Fashion-MNIST and CIFAR-10 among 31 clients",
    tuple(
        Cell(
            f"{preset}, {partition}",
            preset,
            (f"partition={partition}", f"method.votes={votes}", "rounds=40"),
            votes,
            {"accuracy": printed},
        )
        for (preset, partition), both in PRINTED.items()
        for votes, printed in zip(("binary", "ternary"), both, strict=True)
    ),
    grid({"accuracy": ""}, "Data"),
    "The paper does not give the number of rounds; here it is 40, unless another was asked for.",
)
