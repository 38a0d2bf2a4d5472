"""Benchmarks by name. Each measures this machine, and returns rows of numbers for a table, a page or a file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError
from fedvote.studies.rows import Rows, table


@dataclass(frozen=True)
class Benchmark:
    """The function `bench` in the file of its name, with _ for -. Its parameters are the options that it takes."""

    about: str
    extra: str = ""  # the package's extra that it needs


BENCHMARKS: dict[str, Benchmark] = {
    "codec": Benchmark("Bits a weight and speed of coded ballots, beside packbits, zlib and zstd", "bench"),
    "tally": Benchmark("Speed and memory of counting packed ballots, beside float32 averages"),
    "judge": Benchmark("Seconds that each reputation rule takes to judge the ballots of a round"),
    "secure": Benchmark("Seconds and bytes of a secure tally, by number of clients and neighbours"),
    "private-votes": Benchmark("Epsilon against accuracy of votes with randomised response, on digits", "privacy"),
    "simulate": Benchmark("Seconds a round in the simulator, by network and number of clients"),
    "infer": Benchmark("Size, loading time and speed of exported networks, in ONNX Runtime and as C", "onnx"),
    "server": Benchmark(
        "Memory and seconds of a server's round with many ballots, and the speed of decoding", "flower"
    ),
    "flower": Benchmark("Seconds and bytes of a round over Flower, and the clients' own work in it", "flower"),
    "turn": Benchmark("CPU seconds of a client's turn over Flower, with and without a process that stays", "flower"),
    "late": Benchmark("Accuracy where some clients are always late, by what the server does with their ballots"),
    "churn": Benchmark("A federation of 100 clients that come and go, and 50 rounds of five: what grows", "flower"),
    "slow-link": Benchmark("Seconds to an accuracy over Flower, by links of 1 Mbit/s up and 10 down", "flower"),
    "peers": Benchmark("One job in fedvote, pfl-research, Flower's simulation and a PyTorch loop; needs a clone"),
}
OPTIONS = ("model", "clients", "only", "preset", "set", "rounds", "device")
"""Options of the command `fedvote bench`. A benchmark takes those that its function has as parameters."""

SEED = 0  # of all data, ballots and networks that benchmarks draw


def benchmark(name: str, **asked: Any) -> partial[Rows]:
    """A benchmark, ready to be called. Options that are None or empty are ignored."""
    if name not in BENCHMARKS:
        raise ConfigError(f"there is no benchmark {name!r}; known: {', '.join(BENCHMARKS)}")
    try:
        run: Callable[..., Rows] = import_module(f"{__name__}.{name.replace('-', '_')}").bench
    except ModuleNotFoundError as error:
        extra = BENCHMARKS[name].extra
        raise ConfigError(f"the benchmark {name} needs {error.name}: pip install '.[{extra}]' in a clone") from error
    given = {option: value for option, value in asked.items() if value not in (None, [])}
    known = [option for option in OPTIONS if option in inspect.signature(run).parameters]
    if unknown := [f"--{option}" for option in given if option not in known]:
        takes = ", ".join(f"--{option}" for option in known) or "no options but --json and --page"
        raise ConfigError(f"the benchmark {name} does not use {', '.join(unknown)}; it takes {takes}")
    for option, least in (("rounds", given.get("rounds", 1)), ("clients", min(given.get("clients", [1])))):
        if least < 1:
            raise ConfigError(f"--{option} is {least}, expected a whole number above 0")
    return partial(run, **given)


def configuration(measure: partial[Rows]) -> dict[str, Any]:
    """Every parameter of a benchmark, defaults included; with a preset, also `run`: every key of its configuration.

    A benchmark's own settings for a preset are SETTINGS in its file. Keys that a row's name stands for are the row's.
    """
    from fedvote.runs.config import read
    from fedvote.runs.toml_tables import as_table, in_order

    called = inspect.signature(measure.func).bind_partial(**measure.keywords)
    called.apply_defaults()
    options = called.arguments
    if "preset" in options:
        own = getattr(inspect.getmodule(measure.func), "SETTINGS", ())
        settings = in_order([*own, *options["set"], f"rounds={options['rounds']}"])
        options["run"] = as_table(read(options["preset"], settings))
    return options


def bench(name: str, file: Path | None, page: Path | None, **asked: Any) -> str:
    """Run a benchmark and write its numbers to the given files; returns its table as text."""
    from fedvote.runs.environment import provenance
    from fedvote.system.atomic_file import try_writing, write
    from fedvote.system.device import find_device

    measure = benchmark(name, **asked)
    for path in filter(None, (file, page)):  # refuse a bad path before anything is measured
        try_writing(path)
    config = configuration(measure)  # fail on mistakes before anything is measured
    made_by, rows = provenance(find_device(asked.get("device") or "auto"), [SEED]), measure()
    if file is not None:
        about = {"benchmark": name, "asked": measure.keywords, "config": config, **made_by}
        write(file, json.dumps({**about, "rows": rows}, indent=2) + "\n")
    if page is not None:
        from fedvote.studies.bench.growth_page import growth_page

        write(page, growth_page(name, rows, made_by["environment"]).html())
    return table(rows)
