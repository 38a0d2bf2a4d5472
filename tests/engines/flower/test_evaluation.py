"""Clients judge the networks of a server that has no example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.app import Context, RecordDict

from fedvote import ConfigError, FedAvg, FedVote, load_network
from fedvote.engines.flower.local_data import NO_DATA, clients_site, servers_site
from fedvote.engines.flower.pooled_evaluation import EXAMPLES, check_answer, needed, pooled_statistics, read, write
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.server import Server
from fedvote.errors import DataError, WireError
from fedvote.export.export_run import export_run
from fedvote.network.network import Network
from fedvote.network.round_metrics import score
from fedvote.runs.claim import claim, release
from fedvote.runs.config import Config, Inputs
from fedvote.runs.description import JUDGED_BY, describe
from fedvote.runs.experiment import dataset, record
from fedvote.runs.folder import RunFolder
from fedvote.runs.judged_by import CLIENTS, judged_by
from tests.engines.flower.grid import FakeGrid, grid_of, number, silent, small
from tests.toy import assert_same, module

HELD_OUT = (31, 7, 20, 0)  # examples of each client; the last has none
DIGITS = dataset("digits")
INPUTS = Inputs(DIGITS.shape, DIGITS.classes, DIGITS.train.mean, DIGITS.train.std, "uint8")


def save_clients(folder: Path) -> list[Path]:
    """A folder of examples for each client."""
    folders, begin = [], 0
    for client, held_out in enumerate(HELD_OUT):
        folders.append(folder / f"client-{client}")
        folders[-1].mkdir(parents=True)
        rows, test = slice(100 * client, 100 * client + 100), slice(begin, begin + held_out)
        np.savez(folders[-1] / "train.npz", x=DIGITS.train.x[rows].numpy(), y=DIGITS.train.y[rows].numpy())
        if held_out:
            np.savez(folders[-1] / "test.npz", x=DIGITS.test.x[test].numpy(), y=DIGITS.test.y[test].numpy())
        begin += held_out
    return folders


def serve(config: Config, grid: FakeGrid, folder: Path) -> Iterator[dict[str, Any]]:
    """A run of a server without data, into a folder."""
    federation, run = servers_site(config, NO_DATA, "cpu"), RunFolder(folder)
    since = claim(run, config, resume=True)
    describe(run, federation, judged_by(NO_DATA, federation.data))
    server = Server(federation, config, folder, grid, None, grid.clock, grid.sleep)
    try:
        for snapshot in record(federation, run, since, server.run(since), 1.0, server.statistics):
            yield snapshot.record
    finally:
        release(run)


@pytest.fixture(scope="module")
def config() -> Config:
    return replace(small("rounds=2", "flower.deadline=20", "flower.patience=100"), inputs=INPUTS)


def grid_with_data(folder: Path) -> FakeGrid:
    grid = grid_of(4)
    for client, own in enumerate(save_clients(folder)):
        node = number(grid, client)
        grid.contexts[node] = Context(1, node, {"data": str(own)}, RecordDict(), {})
    return grid


@pytest.fixture(scope="module")
def finished(config: Config, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("federation")
    return folder / "run", list(serve(config, grid_with_data(folder), folder / "run"))


def test_accuracy_by_clients_is_the_pooled_accuracy_of_their_examples(
    finished: tuple[Path, list[dict[str, Any]]],
) -> None:
    """To the digit, with the statistics that the exported network has."""
    folder, records = finished
    network, pooled = load_network(folder), DIGITS.test.rows(slice(0, sum(HELD_OUT)))
    with torch.no_grad():
        right = int((network(pooled.x).argmax(1) == pooled.y).sum())
    last = records[-1]
    assert last["accuracy_calibrated"] == right / len(pooled) and last["judged_on"] == sum(HELD_OUT)
    assert last["evaluation_bytes"] > 10_000  # the votes, to four clients, twice
    assert last["judges"] == 3 and len(last["accuracy_quartiles"]) == 5
    assert last["accuracy_quartiles"] == sorted(last["accuracy_quartiles"])
    assert {"accuracy", "accuracy_float", "accuracy_float_calibrated", "loss", "loss_float"} <= last.keys()


def test_the_folder_says_that_no_example_was_on_the_server(finished: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, _ = finished
    assert RunFolder(folder).environment()[JUDGED_BY]["source"] == CLIENTS
    with pytest.raises(ConfigError, match=r"judged by its clients; no example was on the server: name the data"):
        export_run(folder, test=True)
    _, quality = export_run(folder, test=True, data="digits")
    expected, _ = score(lambda x: load_network(folder).network(x), DIGITS.test, 1000)
    assert quality == {"accuracy": pytest.approx(expected)}


def test_a_judge_that_lost_the_configuration_is_asked_again(config: Config, tmp_path: Path) -> None:
    grid, turn = grid_with_data(tmp_path), FakeGrid.turn

    def forgetful(grid: FakeGrid, node: int, message: Any) -> list[Any]:
        if message.metadata.message_type == "evaluate":
            grid.contexts[node].state.pop("problem", None)
        return [(1.0, turn(grid, node, message))]

    grid.behave[number(grid, 1)] = forgetful
    (first, *_) = serve(config, grid, tmp_path / "run")
    assert first["judged_on"] == sum(HELD_OUT) and first["judges"] == 3


def test_a_judge_that_does_not_answer_holds_up_nobody_for_long(config: Config, tmp_path: Path) -> None:
    grid = grid_with_data(tmp_path)
    slow = number(grid, 1)
    turn = grid.turn

    def behave(grid: FakeGrid, node: int, message: Any) -> list[Any]:
        if message.metadata.message_type == "evaluate":
            return silent(grid, node, message)
        return [(1.0, turn(node, message))]

    grid.behave[slow] = behave
    (first, *_) = serve(config, grid, tmp_path / "run")
    assert first["judged_on"] == sum(HELD_OUT) - HELD_OUT[1] and first["judges"] == 2


def test_a_server_without_data_needs_to_know_its_inputs() -> None:
    with pytest.raises(DataError, match=r"write a table \[inputs\] with shape"):
        servers_site(small(), NO_DATA, "cpu")


@pytest.mark.parametrize(("setting", "why"), [("metric=f1", "metric is f1"), ("data.task=regression", "data.task is")])
def test_clients_cannot_judge_by_more_than_counts(config: Config, setting: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"{why}.*, but the server has no data, and clients .* count right classes"):
        servers_site(replace(small(setting), inputs=INPUTS), NO_DATA, "cpu")


@pytest.mark.parametrize(
    "wrong", [{"shape": ()}, {"shape": (0, 8)}, {"classes": ("one",)}, {"std": ()}, {"std": (0.0,)}], ids=str
)
def test_inputs_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"inputs\."):
        replace(Inputs((1, 8, 8), ("a", "b"), (0.5,), (0.5,)), **wrong)


def test_a_client_without_held_out_examples_has_none(tmp_path: Path) -> None:
    problem = Problem("", DIGITS.shape, 10, DIGITS.train.mean, DIGITS.train.std)
    sizes = [len(clients_site(small(), problem, 0, str(own), "cpu").data.test) for own in save_clients(tmp_path)]
    assert sizes == list(HELD_OUT)


def test_statistics_of_parts_are_pooled_to_those_of_the_whole() -> None:
    x = torch.randn(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    answers = [
        {EXAMPLES: torch.tensor(len(rows)), "1.running_mean": rows.mean(0), "1.running_var": rows.var(0, correction=0)}
        for rows in x.split([10, 20, 30])
    ]
    pooled = pooled_statistics(answers)
    torch.testing.assert_close(pooled["1.running_mean"], x.mean(0).float())
    torch.testing.assert_close(pooled["1.running_var"], x.var(0, correction=0).float())


@pytest.mark.parametrize("method", [FedVote(), FedVote(votes="ternary"), FedAvg()])
def test_models_are_made_of_a_part_of_the_state(method: Any) -> None:
    state = method.init(Network(module(), 0), 3)
    sent = needed(method, state)
    assert "vote_weight" not in sent
    again = read(write(sent), 2**20)
    for name, weights in method.models(state).items():
        made = method.models(again)[name]
        assert_same({"v": made.voted, "f": made.floats}, {"v": weights.voted, "f": weights.floats})


@pytest.mark.parametrize(
    "change",
    [
        {EXAMPLES: torch.tensor(-1)}, {EXAMPLES: torch.tensor(3.0)}, {"deployed/right": torch.tensor(11)},
        {"deployed/right": torch.tensor(-1)}, {"deployed/loss": torch.tensor(float("nan")).double()},
        {"deployed/loss": torch.tensor(-1.0).double()}, {"deployed/right": torch.ones(2)}, {"more": torch.tensor(1)},
    ],
)  # fmt: skip
def test_answers_that_cannot_be_are_refused(change: dict[str, torch.Tensor]) -> None:
    answer = {
        EXAMPLES: torch.tensor(10),
        "deployed/right": torch.tensor(5),
        "deployed/loss": torch.tensor(1.0).double(),
    }
    expected: dict[str, tuple[int, ...]] = {"deployed/right": (), "deployed/loss": ()}
    check_answer(answer, expected)
    with pytest.raises(WireError):
        check_answer(answer | change, expected)


@pytest.mark.parametrize(
    "name", ["deployed/right", "deployed/loss", "deployed/1.running_mean", "deployed/1.running_var"]
)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint64])
def test_numbers_of_a_type_that_cannot_be_compared_stop_no_server(name: str, dtype: torch.dtype) -> None:
    """A hostile client may send any tensor: the server refuses its answer, and goes on with all others."""
    zero = torch.zeros(8, dtype=torch.uint8).view(dtype)[0]
    with pytest.raises(WireError, match=f"{name} is {dtype}"):
        check_answer(read(write({EXAMPLES: torch.tensor(1), name: zero}), 1000), {name: ()})


def test_statistics_whose_pool_would_not_be_finite_are_refused() -> None:
    name = "deployed/1.running_mean"
    with pytest.raises(WireError, match="beyond"):
        check_answer({EXAMPLES: torch.tensor(1), name: torch.tensor([3e38])}, {name: (1,)})


@pytest.mark.parametrize("payload", [b"", b"junk", write({"a": torch.zeros(9000)}), write({"a": torch.zeros(9)})[:-3]])
def test_what_is_no_answer_or_too_large_is_refused(payload: bytes) -> None:
    with pytest.raises(WireError):
        read(payload, 1000)
