"""What ByzFL and Flower make of the same stacks, for `test_agreement.py`.

Run it where both are installed, `pip install byzfl==0.0.11 flwr==1.41.0`, with a torchvision that fits the torch there;
it writes vectors.json beside this file.
"""

from __future__ import annotations

import json
from importlib import import_module, metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("vectors.json")
SIZES = ((4, 0), (5, 1), (7, 2), (10, 3), (11, 4))  # K, f
WEIGHTS = (2, 9)  # D
SEEDS = (0, 1)


def stack(seed: int, K: int, D: int, f: int) -> np.ndarray:
    """(K, D) numbers in [-1, 3), and the first f rows ten times as large: from raw bits, which no version changes."""
    uniform = np.random.Philox(seed).random_raw(K * D).reshape(K, D) / 2**64
    return (4 * uniform - 1) * np.where(np.arange(K) < f, 10.0, 1.0)[:, None]


def byzfl(x: np.ndarray, f: int) -> dict[str, np.ndarray]:
    """Objects are new for each stack: ByzFL's centred clipping remembers its last result."""
    b, start = import_module("byzfl"), our_start(x)
    return {
        "byzfl Average": b.Average()(x),
        "byzfl Median": b.Median()(x),
        "byzfl TrMean": b.TrMean(f)(x),
        "byzfl Krum": b.Krum(f)(x),
        "byzfl MultiKrum": b.MultiKrum(f)(x),
        # it starts from 0: where that is our start, it is with us after any number of iterations
        "byzfl GeometricMedian T=3": start + b.GeometricMedian(nu=0.1, T=3)(x - start),
        "byzfl GeometricMedian T=5000": b.GeometricMedian(nu=1e-6, T=5000)(x),
        "byzfl CenteredClipping L=1": b.CenteredClipping(L=1, tau=2.0)(x),
        "byzfl CenteredClipping L=5": b.CenteredClipping(L=5, tau=2.0)(x),
    }


def our_start(x: np.ndarray) -> np.ndarray:
    """The median, moved by the mean of the rows' ways from it, cut to the length of the middle one."""
    middle = np.median(x, 0)
    way = x - middle
    length = np.linalg.norm(way, axis=1)
    cut = np.minimum(1, np.sort(length)[(len(x) - 1) // 2] / np.maximum(length, 1e-300))
    return np.asarray(middle + (way * cut[:, None]).mean(0))


def flower(x: np.ndarray, f: int) -> dict[str, np.ndarray]:
    """The functions of the older strategies, and where the newer ones (`serverapp`) have their own, those as well."""
    old = import_module("flwr.server.strategy.aggregate")
    trim_mean = import_module("flwr.serverapp.strategy.fedtrimmedavg").trim_mean
    K = len(x)
    beta = (f + 0.5) / K  # of which Flower makes f again, by rounding down
    results = [([row], 1) for row in x]
    return {
        "flower mean": old.aggregate(results)[0],
        "flower median": old.aggregate_median(results)[0],
        "flower trimmed": old.aggregate_trimmed_avg(results, beta)[0],
        "flower serverapp trimmed": trim_mean(x, beta),
        "flower krum": old.aggregate_krum(results, f, 0)[0],
        "flower multi-krum m=2": old.aggregate_krum(results, f, 2)[0],
        "flower multi-krum m=K-f": old.aggregate_krum(results, f, K - f)[0],
        "flower serverapp krum": multikrum(x, f, 1),
        "flower serverapp multi-krum m=2": multikrum(x, f, 2),
    }


def multikrum(x: np.ndarray, f: int, m: int) -> np.ndarray:
    app, krum = import_module("flwr.app"), import_module("flwr.serverapp.strategy.multikrum")
    replies = [app.RecordDict({"arrays": app.ArrayRecord([row])}) for row in x]
    chosen = krum.select_multikrum(replies, num_malicious_nodes=f, num_nodes_to_select=m)
    return np.asarray(np.mean([reply["arrays"].to_numpy_ndarrays()[0] for reply in chosen], 0))


def main() -> None:
    cases: list[dict[str, Any]] = []
    for (K, f), D, seed in product(SIZES, WEIGHTS, SEEDS):
        x = stack(seed, K, D, f)
        results = {name: result.round(12).tolist() for name, result in (byzfl(x, f) | flower(x, f)).items()}
        cases.append({"K": K, "D": D, "f": f, "seed": seed, "sum": x.sum(), "results": results})
    versions = {name: metadata.version(name) for name in ("byzfl", "flwr", "numpy")}
    lines = ",\n".join(json.dumps(case) for case in cases)
    FILE.write_text(f'{{"versions": {json.dumps(versions)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
