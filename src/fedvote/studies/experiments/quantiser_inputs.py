"""What quantisers are given: one client's updates and vote probabilities after one round (Figure 3).

Beside each histogram stands the distribution that the paper expects, of the same mean and variance: a Gaussian for
updates, a symmetric Beta for probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedvote.federation import Federation
from fedvote.methods import FedVote
from fedvote.methods.update import FloatMethod
from fedvote.report.axis import Axis, axis_from_zero, step_size, steps_between
from fedvote.report.chart import Chart, Page, facts_of, line, panels
from fedvote.report.sections import section
from fedvote.runs.config import Config, read
from fedvote.runs.experiment import federation
from fedvote.runs.folder import environment
from fedvote.runs.toml_tables import as_table
from fedvote.studies.experiments.experiment import Asked
from fedvote.studies.rows import chosen, table
from fedvote.system.device import find_device
from fedvote.training.descent import descend

BINS = 60
WIDE = 4  # standard deviations to both sides, of updates
TITLES = {
    "updates": ("Updates", "Figure 3 (a)", "change of a weight", "Gaussian"),
    "probabilities": ("Vote probabilities", "Figure 3 (b)", "probability of a vote of +1", "symmetric Beta"),
}


@dataclass(frozen=True)
class Inputs:
    about: str = "Figure 3: histograms of what is quantised, updates and vote probabilities, Fashion-MNIST"
    preset: str = "fashion-mnist"
    rate: float = 0.001  # of FedAvg, whose updates are looked at

    def measure(self, asked: Asked, runs: Path) -> Iterator[Histograms]:
        from scipy import stats

        wanted = chosen(asked.only, TITLES, self.about)
        config = read(self.preset, asked.settings)
        floats = read(self.preset, ["method=fedavg", f"method.lr={self.rate}", *asked.settings])
        delta, pi = updates(federation(floats, "cpu")), probabilities(federation(config, "cpu"))
        side = WIDE * float(delta.std())
        gaussian = stats.norm(loc=float(delta.mean()), scale=float(delta.std()))
        found = {
            "updates": histogram(delta, -side, side, gaussian),
            "probabilities": histogram(pi, 0, 1, beta_like(pi)),
        }
        shown = {name: found[name] for name in wanted}
        yield Histograms(self.about, config, shown, environment(find_device("cpu")))


def updates(made: Federation) -> NDArray[Any]:
    """delta = theta^(k) - theta_m^(k,tau), of the weights that would be voted on."""
    assert isinstance(made.method, FloatMethod)
    down = made.method.broadcast(made.start().state)
    changed = made.method.update(made.network, down, made.batches(made.data.train, [made.key(1, 0)]))
    return changed[0, : made.network.D].detach().numpy()


def probabilities(made: Federation) -> NDArray[Any]:
    """pi = (1 + phi(h_m^(k,tau))) / 2, by which votes of +1 are drawn."""
    assert isinstance(made.method, FedVote)
    phi, down = made.method.normalisation, made.method.broadcast(made.start().state)
    latent_KD = phi.inverse(made.method.soft(down)).expand(1, -1)
    (latent_KD, *_) = descend(made.method, made.network, [latent_KD], made.batches(made.data.train, [made.key(1, 0)]))
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
    from scipy import stats

    a = (1 / (4 * np.mean((values - 0.5) ** 2)) - 1) / 2
    return stats.beta(a=a, b=a)


@dataclass(frozen=True)
class Histograms:
    about: str
    config: Config
    found: Mapping[str, Mapping[str, Any]]
    environment: Mapping[str, str]

    def numbers(self) -> dict[str, Any]:
        return {"environment": self.environment, "config": as_table(self.config), "histograms": self.found}

    def page(self) -> Page:
        charts = [chart(name, one) for name, one in self.found.items()]
        explain = (
            "One client after one round: what a method that sends updates has to round, and what FedVote rounds. "
            "Shares of weights in bins, beside the distribution of the same mean and variance that the paper expects. "
            "The paper's histograms are of MNIST."
        )
        facts = facts_of([self.config], self.environment, [1])
        return Page(self.about, facts, [section("Histograms", panels(charts), explain=explain)], charts)

    def text(self) -> str:
        def fitted(one: Mapping[str, Any]) -> str:
            return ", ".join(f"{name} = {value:.4g}" for name, value in one["parameters"].items())

        return table(
            [
                {"of": name, "expected": f"{TITLES[name][3]}, {fitted(one)}", "within the chart": sum(one["share"])}
                for name, one in self.found.items()
            ]
        )


def chart(name: str, one: Mapping[str, Any]) -> Chart:
    title, figure, x_name, fitted = TITLES[name]
    middles = [(a + b) / 2 for a, b in pairwise(one["edges"])]
    names = ["measured", "expected"]
    shares = {"measured": one["share"], "expected": one["expected"]}
    series = tuple(line(each, names, middles, shares[each], lambda i: f"{middles[i]:.3g}") for each in names)
    low, high = one["edges"][0], one["edges"][-1]
    x = Axis(low, high, steps_between(low, high, step_size(high - low, 6)))
    y = axis_from_zero(100 * max(*one["share"], *one["expected"]))
    return Chart(name, f"{title}, {fitted}", series, x, x_name, y, figure)


FIGURE_3 = Inputs()
