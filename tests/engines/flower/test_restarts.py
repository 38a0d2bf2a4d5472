"""Servers and clients that are killed and come back: a run ends with the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message, UserConfig

from fedvote.engines.flower.server_app import serve
from fedvote.errors import ConfigError
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run as resume_here
from tests.engines.flower.grid import (
    SMALL,
    FakeGrid,
    Reply,
    after,
    elect,
    frame_of,
    grid_of,
    number,
    run,
    small,
)
from tests.toy import assert_same


def test_a_run_that_began_over_a_network_goes_on_in_the_simulator(tmp_path: Path) -> None:
    """What clients remember stayed with them: they begin anew."""
    config = small("rounds=1", "method=signum")
    list(elect(config, grid_of(4), tmp_path))
    last = list(resume_here(replace(config, rounds=2), RunFolder(tmp_path), device="cpu", resume=True))[-1]
    assert last.round == 2 and last.record["clients"] == [0, 1, 2, 3] and last.memory


def own_data(folder: Path) -> str:
    x, y = np.zeros((20, 1, 8, 8), np.uint8), np.arange(20) % 10
    for name in ("train.npz", "test.npz"):
        np.savez(folder / name, x=x, y=y)
    return str(folder)


def served(folder: Path, data: str, rounds: int, **settings: int) -> RunFolder:
    """A run over a network, whose server and clients have data of their own or none."""
    grid = grid_of(4)
    grid.node_config = {"data": data} if data else {}
    grid.behave = dict.fromkeys(grid.nodes, after(0.0))
    (folder / "small.toml").write_text(SMALL)
    changes = " ".join(f"{name}={value}" for name, value in {"rounds": rounds, **settings}.items())
    options: UserConfig = {
        "experiment": str(folder / "small.toml"),
        "out": str(folder / "run"),
        "set": changes,
        "data": data,
    }
    serve(grid, options)
    return RunFolder(folder / "run")


def test_a_run_on_data_that_clients_brought_goes_on_with_these_and_no_others(tmp_path: Path) -> None:
    data = own_data(tmp_path)
    folder = served(tmp_path, data, 1)
    refusal = "holds a run on data that its clients and its server brought.*resume it over the network, by `flwr run`"
    with pytest.raises(ConfigError, match=refusal):
        list(resume_here(small("rounds=2"), folder, device="cpu", resume=True))
    with pytest.raises(ConfigError, match=refusal):
        served(tmp_path, "", 2)
    assert len(folder.metrics()) == 1 and len(served(tmp_path, data, 2).metrics()) == 2


def test_who_changes_a_run_over_a_network_is_told_to_go_on_with_it_there(tmp_path: Path) -> None:
    served(tmp_path, "", 1)
    with pytest.raises(
        ConfigError, match=r"differs in seed .*by `flwr run` or `fedvote deploy local` as it was started"
    ) as refused:
        served(tmp_path, "", 1, seed=5)
    assert "fedvote run" not in str(refused.value)


def test_a_server_killed_between_rounds_ends_with_the_bits_of_one_that_was_not(tmp_path: Path) -> None:
    config = small("method.reputation=proportional", "rounds=4")
    whole = list(elect(config, grid_of(4), tmp_path / "whole"))
    run = elect(config, grid_of(4), tmp_path / "killed")
    next(run), next(run)
    run.close()
    rest = list(elect(config, grid_of(4), tmp_path / "killed"))
    assert [snapshot.round for snapshot in rest] == [3, 4]
    assert_same(whole[-1].state, rest[-1].state)
    assert any(name.startswith("reputation/") for name in rest[-1].state)
    assert [record["round"] for record in RunFolder(tmp_path / "killed").metrics()] == [1, 2, 3, 4]


@pytest.mark.parametrize("after_turns", [False, True], ids=["between rounds", "within a round"])
def test_clients_that_remember_on_disk_end_with_the_bits_of_a_run_that_was_not_killed(
    after_turns: bool, tmp_path: Path
) -> None:
    """Killed within a round, the clients have taken their turn, and take the same turn again."""
    config = small("method=signum", "rounds=3")
    whole = list(elect(config, grid_of(4), tmp_path / "whole"))

    def grid() -> FakeGrid:
        made = grid_of(4)
        made.node_config = {"memory": str(tmp_path / "memory")}
        return made

    first = grid()
    run = elect(config, first, tmp_path / "killed")
    next(run)
    if after_turns:
        first.dies = True
        with pytest.raises(KeyboardInterrupt):
            next(run)
        assert len(first.sent) == 8
    run.close()
    rest = list(elect(config, grid(), tmp_path / "killed"))
    assert [snapshot.round for snapshot in rest] == [2, 3]
    assert_same(whole[-1].state, rest[-1].state)
    assert len(list((tmp_path / "memory").iterdir())) == 4


def test_a_client_that_is_asked_for_a_round_again_takes_the_same_turn_again(tmp_path: Path) -> None:
    frames: list[bytes] = []

    def twice(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        reply = grid.turn(node, message)
        frames.extend([frame_of(reply), frame_of(grid.turn(node, message))])
        return [(1.0, reply)]

    run(tmp_path, {0: twice}, "method=signum", "method.beta=0.5")
    assert len(frames) == 6 and frames[::2] == frames[1::2]


def test_reputations_stay_with_the_key_when_nodes_get_new_ids(tmp_path: Path) -> None:
    config = small("rounds=2")
    run = elect(config, grid_of(4), tmp_path)
    next(run)
    run.close()
    grid = grid_of(4)
    grid.nodes = {900 - node: key for node, key in grid.nodes.items()}
    list(elect(config, grid, tmp_path))
    asked = {m.metadata.dst_node_id: m.content.config_records["task"]["client"] for m in grid.sent}
    before = grid_of(4)
    assert {900 - number(before, client): client for client in range(4)} == asked
