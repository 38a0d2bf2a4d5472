"""The drawing of who has what: right counts, and room for it in a terminal of 80 columns."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from fedvote.core import Dataset
from fedvote.data.show import class_counts, picture

Toy = Callable[..., Dataset]


def drawn(data: Dataset, parts: list[np.ndarray]) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=80).print(picture(data, parts))
    return out.getvalue().splitlines()


def test_counts_are_by_client_and_class(toy: Toy) -> None:
    data = toy([0, 1, 1, 2, 2, 2], 4)
    parts = [np.array([0, 1, 2]), np.array([3, 4]), np.array([], dtype=np.int64)]
    assert class_counts(data, parts).tolist() == [[1, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]]


def test_the_larger_the_share_the_darker(toy: Toy) -> None:
    data = toy([0] * 5 + [1] * 4 + [2], 3)
    lines = drawn(data, [np.arange(5), np.arange(10), np.arange(5, 10)])
    assert [line.split() for line in lines[:4]] == [
        ["client", "0", "1", "2", "samples"],
        ["0", "██", "5"],
        ["1", "▒▒", "░░", "··", "10"],
        ["2", "▓▓", "··", "5"],
    ]
    assert lines[4] == "toy, 3 clients; █ is up to 100% of a client's samples, blank is none"


@pytest.mark.parametrize("classes", [1, 2, 10, 20, 21, 62, 100, 1000])
@pytest.mark.parametrize("clients", [1, 40, 41, 500])
def test_it_fits_a_terminal_of_80_columns(classes: int, clients: int, toy: Toy) -> None:
    data = toy(np.arange(20_000) % classes, classes)
    lines = drawn(data, np.array_split(np.arange(20_000), clients))
    assert max(map(len, lines)) <= 80 and "…" not in "".join(lines)
    assert sum(line.split()[0].isdigit() for line in lines) == min(clients, 40)
    assert (lines[-1] == f"not shown: {clients - 40} more clients") == (clients > 40)


def test_too_many_classes_share_columns_and_lose_no_sample(toy: Toy) -> None:
    data = toy(np.arange(100), 100)
    lines = drawn(data, [np.arange(100)])
    assert lines[1].split() == ["0", "█" * 50, "100"]
    assert "a column is 2 of 100 classes" in lines[3]
