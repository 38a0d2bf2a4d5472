"""Presets have the paper's numbers, and the place in the paper is named beside each."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fedvote.data.partition import IID, Dirichlet, Writer
from fedvote.methods import FedVote
from fedvote.quantize import Tanh
from fedvote.reputation import Proportional
from fedvote.runs.config import read
from fedvote.runs.presets import presets
from fedvote.runs.sweep import GRIDS

TAU, BATCH = 40, 100  # Appendix A-A: "the number of local iterations tau to 40 and the local batch size to 100"
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)  # Appendix A-A: the rates that were searched
ALPHA = 0.5  # Section VI, Data and Models: "We set alpha = 0.5 unless noted otherwise"


@dataclass(frozen=True)
class Setting:
    """Who takes part, with what: Section VI, Data and Models, and Communication Efficiency."""

    data: str
    model: str
    clients: int
    cohort: int = 0  # everybody
    hostile: int = 0


PAPER = {
    "fashion-mnist": Setting("fashion-mnist", "lenet5", 31),  # clients as in the authors' code
    "cifar10-silo": Setting("cifar10", "vgg7", 31),
    "cifar10-device": Setting("cifar10", "vgg7", 100, cohort=20),
    "femnist-device": Setting("femnist", "vgg7", 300, cohort=20),
    "byzantine": Setting("cifar10", "vgg7", 31, hostile=15),  # Byzantine Resilience: 15 attackers, 16 normal clients
}
OTHERS = {"quickstart", "one-shot", "cifar10-best", "fashion-mnist-best", "femnist-best"}


def test_every_preset_is_the_papers_or_known_not_to_be() -> None:
    assert set(presets()) == PAPER.keys() | OTHERS


@pytest.mark.parametrize("name", PAPER)
def test_a_preset_has_the_clients_data_and_network_of_the_paper(name: str) -> None:
    config = read(name)
    who = config.federation
    assert Setting(config.data.name, config.model.name, who.clients, who.cohort, who.hostile) == PAPER[name]
    writers = isinstance(config.partition, Writer)
    assert writers == (config.data.name == "femnist")  # "the unique writing styles of clients"
    assert writers or config.partition == Dirichlet(ALPHA)


@pytest.mark.parametrize("name", PAPER)
def test_a_preset_trains_as_the_paper_does(name: str) -> None:
    config = read(name)
    assert (config.local.steps, config.local.batch, config.local.epochs) == (TAU, BATCH, 0)
    method = config.method
    assert isinstance(method, FedVote)
    assert (method.optimizer, method.optimizer_options) == ("Adam", {}) and method.lr in RATES  # Appendix A-A
    assert method.p_min == 0.001  # Appendix A-A
    assert method.normalisation == Tanh(3 / 2)  # Section VI, Implementation Details
    assert method.votes == "binary" and not method.train_float  # the same: the last layer is fixed
    assert config.model.keep_float is None  # which is the last layer


def test_fashion_mnist_is_trained_for_as_many_rounds_as_in_table_1() -> None:
    assert read("fashion-mnist").rounds == 20  # Section VI, Normalization Function


def test_no_client_of_femnist_has_less_than_a_batch() -> None:
    config = read("femnist-device")
    assert isinstance(config.partition, Writer) and config.partition.min_samples == BATCH


def test_reputations_fade_as_in_the_paper() -> None:
    assert Proportional().beta == 0.5  # Appendix A-A


def test_the_grid_of_learning_rates_is_the_papers() -> None:
    assert tuple(map(float, GRIDS["paper-grid"])) == RATES


def test_the_quickstart_differs_from_the_paper_in_its_data_alone() -> None:
    config = read("quickstart")
    assert config.data.name == "digits" and config.partition == Dirichlet(ALPHA)
    assert isinstance(config.method, FedVote) and config.method == FedVote(lr=config.method.lr)
    assert config.method.lr in RATES and config.local.steps == TAU


def test_one_shot_votes_once_after_as_many_steps_as_five_rounds_have() -> None:
    config = read("one-shot")
    assert (config.rounds, config.local.steps) == (1, 5 * TAU) and config.partition == IID()  # Lemma 1
    assert config.federation.clients % 2 == 1  # so that no vote is a tie
