"""What quantisers are given: histograms of one client's updates and vote probabilities (Figure 3 of the paper).

    python benchmarks/inputs.py --preset fashion-mnist --out results/inputs-fashion-mnist.json
    python benchmarks/figures.py results/inputs-fashion-mnist.json --out inputs.html

One client, one round. Beside each histogram, the distribution that the paper expects, of the same mean and variance:
a Gaussian for updates, a symmetric Beta for probabilities.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from fedvote.config import read
from fedvote.core import Key
from fedvote.descent import descend
from fedvote.device import find_device
from fedvote.engines.simulate import Simulation
from fedvote.experiment import simulation
from fedvote.folder import environment
from fedvote.methods import FedVote
from fedvote.methods.update import FloatMethod

BINS = 60
WIDE = 4  # standard deviations to both sides, of updates


def updates(made: Simulation) -> NDArray[Any]:
    """delta = theta^(k) - theta_m^(k,tau), of the weights that would be voted on."""
    assert isinstance(made.method, FloatMethod)
    down = made.method.broadcast(made.start().state)
    changed = made.method.update(made.network, down, made.batches(made.data.train, [Key(made.seed, 1, 0)]))
    return changed[0, : made.network.D].detach().numpy()


def probabilities(made: Simulation) -> NDArray[Any]:
    """pi = (1 + phi(h_m^(k,tau))) / 2, by which votes of +1 are drawn."""
    assert isinstance(made.method, FedVote)
    phi, down = made.method.normalisation, made.method.broadcast(made.start().state)
    latent_KD = phi.inverse(made.method.soft(down)).expand(1, -1)
    (latent_KD, *_) = descend(
        made.method, made.network, [latent_KD], made.batches(made.data.train, [Key(made.seed, 1, 0)])
    )
    return ((1 + phi(latent_KD[0])) / 2).detach().numpy()


def histogram(values: NDArray[Any], low: float, high: float, fitted: Any) -> dict[str, Any]:
    """The share of values in every bin, and what a distribution expects there."""
    edges = np.linspace(low, high, BINS + 1)
    return {
        "edges": edges.tolist(),
        "share": (np.histogram(values, edges)[0] / values.size).tolist(),
        "expected": np.diff(fitted.cdf(edges)).tolist(),
        "parameters": {name: float(value) for name, value in fitted.kwds.items()},
    }


def beta_like(values: NDArray[Any]) -> Any:
    """The symmetric Beta of the same variance: var = 1 / (4 (2 a + 1)), about 1/2."""
    a = (1 / (4 * np.mean((values - 0.5) ** 2)) - 1) / 2
    return stats.beta(a=a, b=a)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="fashion-mnist")
    parser.add_argument("--set", nargs="*", default=[], help="settings of both")
    parser.add_argument("--lr", default="0.001", help="of FedAvg")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    delta = updates(simulation(read(options.preset, ["method=fedavg", f"method.lr={options.lr}", *options.set]), "cpu"))
    pi = probabilities(simulation(read(options.preset, options.set), "cpu"))
    mean, deviation = float(delta.mean()), float(delta.std())
    side = WIDE * deviation
    found = {
        "updates": histogram(delta, -side, side, stats.norm(loc=mean, scale=deviation)),
        "probabilities": histogram(pi, 0, 1, beta_like(pi)),
    }
    about = {"preset": options.preset, "settings": options.set, "environment": environment(find_device("cpu"))}
    options.out.write_text(json.dumps({**about, "histograms": found}) + "\n")
    for name, one in found.items():
        print(f"{name}: {one['parameters']}, {100 * sum(one['share']):.2f} % of the weights within the chart")


if __name__ == "__main__":
    main()
