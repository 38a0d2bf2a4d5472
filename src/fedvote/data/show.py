"""Class counts by client, and a picture of them for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedvote.core import Dataset
from fedvote.data.strata import strata

if TYPE_CHECKING:
    from rich.console import RenderableType

CLIENTS_SHOWN = 40
WIDE_CLASSES = 20  # with more classes, columns are one character wide
COLUMNS = 64  # characters for all classes together
SHADES = " ·░▒▓█"  # none, then fifths of the largest share


def class_counts(data: Dataset, parts: Sequence[np.ndarray]) -> np.ndarray:
    """(N, C): the number of examples by client and class, or other group of `strata`."""
    y, groups = strata(data)
    return np.stack([np.bincount(y[part], minlength=len(groups)) for part in parts])


def picture(data: Dataset, parts: Sequence[np.ndarray]) -> RenderableType:
    """One row per client, one column per class. Darker: a larger share of the client's examples."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    counts_NC, groups = class_counts(data, parts), strata(data)[1]
    heads, width, counts_NG = _columns(groups, counts_NC)
    shares_NG = counts_NG / np.maximum(counts_NG.sum(1, keepdims=True), 1)
    largest = float(shares_NG.max())

    table = Table("client", box=None, padding=(0, 1, 0, 0))
    table.columns[0].justify = "right"
    table.add_column(Text("".join(head[:width].ljust(width + _gap(width)) for head in heads)), no_wrap=True)
    table.add_column("samples", justify="right")
    for client in range(min(len(parts), CLIENTS_SHOWN)):
        cells = "".join(_cell(share, largest, width) for share in shares_NG[client])
        table.add_row(str(client), Text(cells), str(counts_NC[client].sum()))
    return Group(table, Text(_caption(data.name, len(groups), len(parts), largest, len(heads))))


def _columns(classes: Sequence[str], counts_NC: np.ndarray) -> tuple[list[str], int, np.ndarray]:
    """Column heads, column width, and counts by column. Very many classes share columns."""
    if len(classes) <= WIDE_CLASSES:
        fits = COLUMNS // len(classes) - 1
        return list(classes), max(2, min(fits, max(map(len, classes)))), counts_NC
    size = -(-len(classes) // COLUMNS)
    starts = list(range(0, len(classes), size))
    return [classes[start] for start in starts], 1, np.add.reduceat(counts_NC, starts, axis=1)


def _cell(share: float, largest: float, width: int) -> str:
    level = int(np.ceil(share / largest * (len(SHADES) - 1))) if share else 0
    return SHADES[level] * width + " " * _gap(width)


def _gap(width: int) -> int:
    return int(width > 1)


def _caption(name: str, groups: int, clients: int, largest: float, columns: int) -> str:
    notes = [f"{name}, {clients} clients; █ is up to {largest:.0%} of a client's samples, blank is none"]
    if columns < groups:
        notes.append(f"a column is {-(-groups // columns)} of {groups} classes")
    if clients > CLIENTS_SHOWN:
        notes.append(f"not shown: {clients - CLIENTS_SHOWN} more clients")
    return "\n".join(notes)
