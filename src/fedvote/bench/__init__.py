"""Benchmarks by name: each returns rows of numbers, for a table or a file."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from fedvote.core import ConfigError

Rows = list[dict[str, Any]]
# imported late: each may need an extra of its own
BENCHMARKS = {
    "codec": "fedvote.bench.codec:bench_codec",
    "simulate": "fedvote.bench.simulate:bench_simulate",
    "tally": "fedvote.bench.tally:bench_tally",
}


def measure(name: str) -> Rows:
    if name not in BENCHMARKS:
        raise ConfigError(f"there is no benchmark {name!r}; known: {', '.join(BENCHMARKS)}")
    module, _, function = BENCHMARKS[name].partition(":")
    try:
        run: Callable[[], Rows] = getattr(import_module(module), function)
    except ImportError as error:
        raise ConfigError(f"the benchmark {name} needs {error.name}: install fedvote[bench]") from error
    return run()


def table(rows: Rows) -> str:
    """The rows as text, columns aligned."""
    texts = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join("  ".join(text.rjust(w) for text, w in zip(line, widths, strict=True)) for line in texts)


def text(value: Any) -> str:
    """A number as tables show it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
