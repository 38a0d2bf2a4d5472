"""Speed and memory of counting, weighing and comparing packed ballots, beside float32 averages of as many models.

Each way runs in its own process: first on a small example, then once to measure memory, which is the growth of the
process beyond its ballots or models, with its result. Seconds are the best of many runs. The ballots are random bits.
Our loops run on as many threads as torch has; numpy adds on one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from fedvote import packed
from fedvote.packed import Counter, Packed, agreements, count, plain, tally
from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.studies.bench import peak_memory
from fedvote.studies.bench.stopwatch import one_thread, seconds_of
from fedvote.studies.rows import Rows

WEIGHTS, CLIENTS, STREAMED = 13_000_000, 31, 1000
SMALL = 2**18  # weights of the first, small example
PATIENCE_SECONDS = 10  # after which a way is not repeated
Work = Callable[[], Any]


def bench(weights: int = WEIGHTS, cohort: int = CLIENTS, repeats: int = 25) -> Rows:
    """A row for each way: its best seconds, its megabytes, and its speed relative to numpy's mean."""
    spawn = multiprocessing.get_context("spawn")
    rows = []
    for way in ways():
        with ProcessPoolExecutor(1, spawn) as alone:
            rows.append(alone.submit(measure, way, weights, cohort, repeats).result())
    mean = next(row["seconds"] for row in rows if row["way"] == "numpy float32 mean")
    return [{**row, "faster_than_numpy": mean / row["seconds"]} for row in rows]


def ways() -> dict[str, Callable[[int, int], Work]]:
    """Name -> a function of the numbers of weights and clients that prepares the work; only ways that can run here."""
    known: dict[str, Callable[[int, int], Work]] = {
        "packed, counted": _counted,
        "packed, counted, one thread": partial(_counted, within=one_thread),
        "packed, counted, without numba": partial(_counted, within=_without_numba),
        "packed, weighed": _weighed,
        "packed, agreement of all pairs": _compared,
        "packed, 100 ballots streamed": lambda weights, clients: _streamed(weights, 100),
        f"packed, {STREAMED:,} ballots streamed": lambda weights, clients: _streamed(weights, STREAMED),
        "numpy float32 mean": _numpy_mean,
    }
    return known | ({"Flower's aggregate": _flower} if find_spec("flwr") else {})


def measure(way: str, weights: int, clients: int, repeats: int) -> dict[str, Any]:
    prepare = ways()[way]
    prepare(min(weights, SMALL), clients)()  # compiles the loops
    work = prepare(weights, clients)
    megabytes = _extra_megabytes(work)
    seconds = [seconds_of(work)]
    while len(seconds) < repeats and sum(seconds) < PATIENCE_SECONDS:
        seconds.append(seconds_of(work))
    return {"way": way, "seconds": min(seconds), "extra_megabytes": megabytes}


def _counted(weights: int, clients: int, within: Callable[[], AbstractContextManager[None]] = nullcontext) -> Work:
    ballots = _ballots(weights, clients)

    def work() -> Any:
        with within():
            return count(ballots)

    return work


@contextmanager
def _without_numba() -> Iterator[None]:
    loops, packed._loops = packed._loops, lambda rows: plain
    try:
        yield
    finally:
        packed._loops = loops


def _weighed(weights: int, clients: int) -> Work:
    ballots, weights_K = _ballots(weights, clients), torch.rand(clients, generator=Key(0).torch("weights"))
    return lambda: tally(ballots, weights_K)


def _compared(weights: int, clients: int) -> Work:
    ballots = _ballots(weights, clients)
    return lambda: agreements(ballots)


def _streamed(weights: int, ballots: int) -> Work:
    some = _ballots(weights, 16)

    def work() -> Any:
        counter = Counter(weights, BINARY, STREAMED)
        for k in range(ballots):
            counter.add(Packed(some.words_KPW[k % 16, None], weights, BINARY))
        return counter.counts()

    return work


def _numpy_mean(weights: int, clients: int) -> Work:
    models = _models(weights, clients)
    return lambda: models.mean(0)


def _flower(weights: int, clients: int) -> Work:
    from flwr.server.strategy.aggregate import aggregate

    results = [([model], 100) for model in _models(weights, clients)]
    return lambda: aggregate(results)


def _ballots(weights: int, clients: int) -> Packed:
    words = Key(0).numpy("bench").integers(-(2**63), 2**63, (clients, 1, -(-weights // 64)))
    return Packed(torch.from_numpy(words), weights, BINARY)


def _models(weights: int, clients: int) -> Any:
    return Key(0).numpy("bench").random((clients, weights), np.float32)


def _extra_megabytes(work: Work) -> float:
    """Peak resident memory of the work, beyond the memory before it."""
    peak_memory.forget_peak()
    before = peak_memory.resident()
    result = work()
    peak = peak_memory.peak()
    del result
    return (peak - before) / 1e6
