"""Inputs of quantisers: one client's updates and vote probabilities after one round (Figure 3).

Each histogram is shown beside the distribution that the paper expects, with the same mean and variance: a Gaussian for
updates, a symmetric Beta for probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedvote.federation import Federation
from fedvote.methods import FedVote
from fedvote.methods.update import FloatMethod
from fedvote.report.axis import Axis, axis_from_zero, step_size, steps_between
from fedvote.report.chart import Chart, Page, facts_of, line, panels
from fedvote.report.sections import section
from fedvote.runs.config import Config, read
from fedvote.runs.environment import environment
from fedvote.runs.experiment import federation
from fedvote.runs.toml_tables import as_table
from fedvote.studies.experiments.contract import Asked
from fedvote.studies.rows import chosen, table
from fedvote.system.device import find_device
from fedvote.training.descent import descend

BINS = 60
WIDTH = 4  # standard deviations on either side, in the histogram of updates
TITLES = {
    "updates": ("Updates", "Figure 3 (a)", "change of a weight", "Gaussian"),
    "probabilities": ("Vote probabilities", "Figure 3 (b)", "probability of a vote of +1", "symmetric Beta"),
}


@dataclass(frozen=True)
class Inputs:
    ignores: ClassVar[tuple[str, ...]] = ("rounds",)
    about: str = "Figure 3: histograms of updates and vote probabilities, which are quantised, Fashion-MNIST"
    preset: str = "fashion-mnist"
    rate: float = 0.001  # FedAvg's learning rate; its updates are measured

    def names(self) -> dict[str, list[str]]:
        return {"rows": list(TITLES)}

    def measure(self, asked: Asked, runs: Path) -> Iterator[Histograms]:
        from scipy import stats

        wanted = chosen(asked.only, self.names()["rows"], self.about)
        config = read(self.preset, asked.settings)
        floats = read(self.preset, ["method=fedavg", f"method.lr={self.rate}", *asked.settings])
        delta, pi = updates(federation(floats, "cpu")), probabilities(federation(config, "cpu"))
        side = WIDTH * float(delta.std())
        gaussian = stats.norm(loc=float(delta.mean()), scale=float(delta.std()))
        found = {
            "updates": histogram(delta, -side, side, gaussian),
            "probabilities": histogram(pi, 0, 1, beta_like(pi)),
        }
        shown = {name: found[name] for name in wanted}
        yield Histograms(asked.titled(self.about), config, shown, environment(find_device("cpu")))


def updates(run: Federation) -> NDArray[Any]:
    """delta = theta^(k) - theta_m^(k,tau), of the weights that FedVote votes on."""
    assert isinstance(run.method, FloatMethod)
    down = run.method.broadcast(run.start().state)
    delta_KD = run.method.update(run.network, down, run.batches(run.training, [run.key(1, 0)]))
    return delta_KD[0, : run.network.D].detach().numpy()


def probabilities(run: Federation) -> NDArray[Any]:
    """pi = (1 + phi(h_m^(k,tau))) / 2, the probability of a vote of +1."""
    assert isinstance(run.method, FedVote)
    phi, down = run.method.normalisation, run.method.broadcast(run.start().state)
    latent_KD = phi.inverse(run.method.soft(down)).expand(1, -1)
    (latent_KD, *_) = descend(run.method, run.network, [latent_KD], run.batches(run.training, [run.key(1, 0)]))
    return ((1 + phi(latent_KD[0])) / 2).detach().numpy()


def histogram(values: NDArray[Any], low: float, high: float, fitted: Any) -> dict[str, Any]:
    """The share of values in every bin, and the share that a fitted distribution expects."""
    edges = np.linspace(low, high, BINS + 1)
    return {
        "edges": edges.tolist(),
        "share": (np.histogram(values, edges)[0] / values.size).tolist(),
        "expected": np.diff(fitted.cdf(edges)).tolist(),
        "parameters": {name: float(value) for name, value in fitted.kwds.items()},
    }


def beta_like(values: NDArray[Any]) -> Any:
    """The symmetric Beta with the same variance about 1/2: var = 1 / (4 (2 a + 1))."""
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
        made_by = {"seeds": [self.config.seed], "environment": self.environment, "config": as_table(self.config)}
        return {**made_by, "histograms": self.found}

    def page(self) -> Page:
        charts = [chart(name, one) for name, one in self.found.items()]
        explain = (
            "One client after one round: the updates that a float method would round, and the probabilities that "
            "FedVote rounds. Shares of weights by bin, beside the distribution that the paper expects, with the same "
            "mean and variance. The paper's histograms are of MNIST."
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
