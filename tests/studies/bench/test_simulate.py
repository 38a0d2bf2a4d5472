"""The simulator's benchmark: rows that agree with themselves, and a page that draws them."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from fedvote import ConfigError, FedAvg, FedVote
from fedvote.engines.simulate import Simulation, simulation
from fedvote.rounds.snapshot import Snapshot
from fedvote.rounds.traffic import traffic
from fedvote.studies.bench import benchmark, simulate
from fedvote.studies.bench.growth_page import growth_page
from fedvote.studies.bench.simulate import Job, measure_all

CPU, HERE = torch.device("cpu"), {"device": "cpu", "torch": "2"}
JOBS = (
    Job("digits-cnn", (1, 8, 8), FedVote(), steps=2, batch=4),
    Job("digits-cnn", (1, 8, 8), FedAvg(optimizer="SGD"), steps=1, batch=4),
)


@pytest.fixture(autouse=True)
def in_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "matrix_rate", lambda _: 0.5)
    monkeypatch.setattr(simulate, "ROUNDS", 1)


def test_every_cohort_and_length_of_turn_has_a_row_whose_numbers_fit_together() -> None:
    rows = measure_all(JOBS, (1, 3), (4,), CPU)
    assert [(row["method"], row["clients"], row["steps"]) for row in rows] == [
        ("FedVote", 1, 2), ("FedVote", 3, 2), ("FedAvg", 1, 1), ("FedAvg", 3, 1), ("FedVote", 3, 4),
    ]  # fmt: skip
    for row in rows:
        assert row["samples_per_second"] * row["seconds"] == pytest.approx(row["clients"] * row["steps"] * row["batch"])
        assert row["share_of_matrix_rate"] == pytest.approx(row["training_tflops"] / 0.5)
        assert row["training_seconds"] > 0 and row["first_seconds"] > 0 and row["memory_gb"] > 0
    work = [row["training_tflops"] * row["training_seconds"] / row["clients"] / row["steps"] for row in rows]
    assert work == pytest.approx([work[0]] * len(work)), "a step of a client is the same work in all of them"


def test_one_network_is_measured_with_augmentation_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "AUGMENTED", JOBS[0].model)
    plain, augmented = measure_all(JOBS[:1], (2,), (), CPU)
    assert (plain["augment"], augmented["augment"]) == ("", "flip crop")
    assert augmented["training_tflops"] * augmented["training_seconds"] == pytest.approx(
        plain["training_tflops"] * plain["training_seconds"]
    ), "augmentation is no work of the network"


def test_work_is_three_times_the_multiplications_and_additions_of_a_forward_pass() -> None:
    job = JOBS[0]
    made = simulate._federation(job, 1, CPU, compile=False)
    # two 3x3 convolutions on 8x8 and 4x4 pixels, then 128 -> 64 -> 10
    forward = 2 * (64 * 9 * 16 + 16 * 9 * 16 * 32 + 128 * 64 + 64 * 10)
    assert simulate._flops(made, job) == pytest.approx(3 * forward)


def test_what_is_chosen_is_measured_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "JOBS", (JOBS[0], replace(JOBS[0], model="lenet5")))
    rows = benchmark("simulate", model=["digits-cnn"], clients=[3, 1, 3], device="cpu")()
    assert [(row["model"], row["clients"]) for row in rows] == [("digits-cnn", 1), ("digits-cnn", 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": ["vgg"]}, "there is no row 'vgg' in 'simulate'; it has: lenet5; vgg7; small-cnn"),
        ({"clients": [3, 0]}, "--clients is 0, expected a whole number above 0"),
        ({"device": "tpu"}, "device is 'tpu', expected auto, cpu or cuda"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        benchmark("simulate", **arguments)()


def test_no_cohort_is_tried_that_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of as many seconds as clients; beyond twenty, none."""
    monkeypatch.setattr(simulate, "measure", lambda job, clients, *_: {"clients": clients, "seconds": float(clients)})
    rows = measure_all(JOBS[:1], (1, 10, 20, 21), (), CPU)
    assert [row["clients"] for row in rows] == [1, 10, 20]


def test_a_first_round_that_takes_long_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been compiling."""
    rounds = [Snapshot(k, {}, {}, {"seconds": seconds}) for k, seconds in enumerate([60.0, 1.0, 0.5])]
    monkeypatch.setattr(Simulation, "run", lambda _: iter(rounds))
    row = simulate.measure(JOBS[0], 1, CPU, 0.5)
    assert (row["first_seconds"], row["seconds"]) == (60, 1)


def test_the_page_draws_a_line_for_every_network_and_has_every_number() -> None:
    row = {
        "model": "a<b", "method": "FedVote", "augment": "", "compiled": False, "clients": 1, "steps": 40, "batch": 100,
        "seconds": 0.5, "samples_per_second": 8000.0,
    }  # fmt: skip
    rows = [
        {**row, "clients": n, "seconds": math.sqrt(n), "steps": s} for n, s in [(1, 40), (10, 40), (100, 40), (10, 80)]
    ]
    text = growth_page("simulate", rows, HERE).html()
    assert "a&lt;b, 40 steps" in text and "a<b" not in text and "a&lt;b, 10 clients" in text
    for title in ("Seconds a round, by clients", "Samples a second", "by local steps", "Every number"):
        assert title in text
    assert "3.162" in text


def test_other_benchmarks_have_a_page_with_their_table_alone() -> None:
    text = growth_page("codec", [{"votes": "binary", "bits_per_weight": 0.4218, "of_every_time": [0.5]}], HERE).html()
    assert "0.4218" in text and "by clients" not in text and "of_every_time" not in text


def test_votes_are_coded_as_users_get_them() -> None:
    assert [job.method for job in simulate.JOBS if isinstance(job.method, FedVote)] == [FedVote()] * 2
    rows = measure_all(JOBS, (1,), (), CPU)
    assert [row["coding"] for row in rows] == ["entropy", None]


def test_a_round_lasts_until_its_bytes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly(*arguments: Any) -> Any:
        time.sleep(0.2)
        return traffic(*arguments)

    monkeypatch.setattr(simulation, "traffic", slowly)
    assert simulate.measure(JOBS[0], 1, CPU, 0.5)["seconds"] > 0.2


def test_jobs_are_those_of_the_paper_and_of_the_usual_recipe() -> None:
    sizes = {job.model: (job.steps, job.batch) for job in simulate.JOBS}
    assert sizes == {"lenet5": (40, 100), "vgg7": (40, 100), "small-cnn": (5, 10)}
