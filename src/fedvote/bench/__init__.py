"""Benchmarks by name: each returns rows of numbers, for a table or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from fedvote.errors import ConfigError

Rows = list[dict[str, Any]]
# imported late: each may need an extra of its own
BENCHMARKS = {
    "codec": "fedvote.bench.codec:bench_codec",
    "infer": "fedvote.bench.infer:bench_infer",
    "simulate": "fedvote.bench.simulate:bench_simulate",
    "tally": "fedvote.bench.tally:bench_tally",
}


def benchmark(name: str, models: Sequence[str] = (), clients: Sequence[int] = ()) -> Callable[[], Rows]:
    """A benchmark, ready to be run; `models`, `clients`: what to measure, where not everything."""
    if name not in BENCHMARKS:
        raise ConfigError(f"there is no benchmark {name!r}; known: {', '.join(BENCHMARKS)}")
    if (models and name not in ("simulate", "infer")) or (clients and name != "simulate"):
        raise ConfigError(
            f"networks are chosen for simulate and infer, numbers of clients for simulate, not for {name}"
        )
    module, _, function = BENCHMARKS[name].partition(":")
    try:
        found = import_module(module)
    except ImportError as error:
        raise ConfigError(f"the benchmark {name} needs {error.name}: pip install '.[bench,onnx]' in a clone") from error
    run: Callable[..., Rows] = getattr(found, function)
    if name == "simulate":
        return partial(run, **found.choose(models, clients))
    return partial(run, models) if models else run


def table(rows: Rows) -> str:
    """The rows as text, columns aligned."""
    texts = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join("  ".join(text.rjust(w) for text, w in zip(line, widths, strict=True)) for line in texts)


def text(value: Any) -> str:
    """A number as tables show it."""
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
