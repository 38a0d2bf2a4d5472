"""What a client keeps on its disk: nobody else reads it, and a file that was damaged is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from flwr.app import Message, RecordDict

from fedvote.engines.flower.client_memory import Memory
from fedvote.engines.flower.memory_place import memory_file
from fedvote.engines.flower.problem import Problem
from fedvote.engines.flower.tasks import Task
from fedvote.errors import ConfigError
from tests.engines.flower.grid import FakeGrid, Reply, elect, grid_of, honest, lacks_reference, small
from tests.toy import assert_same

FRESH = {"momentum": torch.zeros(3)}


def memory(file: Path) -> Memory:
    return Memory(RecordDict(), file)


def test_what_is_remembered_is_for_the_owners_eyes_alone(tmp_path: Path) -> None:
    file = tmp_path / "memory" / "a.safetensors"
    for round in (1, 2):
        memory(file).after(round, {"momentum": torch.ones(1, 3)}, {"level": torch.arange(3)})
        assert file.stat().st_mode & 0o777 == 0o600


def test_a_client_has_the_broadcasts_of_its_last_two_rounds_and_builds_on_the_newest_first(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    for round in (1, 3, 4):
        memory(file).after(round, {}, {"level": torch.tensor([round])})
    assert [int(broadcast["level"]) for broadcast in memory(file).broadcasts_before(6)] == [4, 3]
    assert [int(broadcast["level"]) for broadcast in memory(file).broadcasts_before(4)] == [3]


@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_a_damaged_file_holds_nothing_and_is_written_again(
    damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.safetensors"
    memory(file).after(1, {"momentum": torch.ones(1, 3)}, {"level": torch.arange(3)})
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[:-5], "empty": b"", "noise": b"noise" * 20}[damage])
    found = memory(file)
    assert found.broadcasts_before(2) == []
    assert_same(found.before(2, FRESH), {"momentum": torch.zeros(1, 3)})
    assert "cannot be read" in capsys.readouterr().err
    memory(file).after(2, {"momentum": torch.ones(1, 3)}, {"level": torch.arange(3)})
    assert len(memory(file).broadcasts_before(3)) == 1


def test_a_client_whose_memory_was_damaged_is_sent_the_whole_broadcast(tmp_path: Path) -> None:
    """It says that it holds nothing, as one that was started anew does."""

    def damaged(grid: FakeGrid, node: int, message: Message) -> list[Reply]:
        again = sum(m.metadata.dst_node_id == node for m in grid.sent) > 2
        return honest(grid, node, message) if again else lacks_reference(grid, node, message)

    grid = grid_of(4)
    grid.node_config = {"memory": str(tmp_path / "memory")}
    run = elect(small("rounds=2"), grid, tmp_path / "run")
    next(run)
    for file in (tmp_path / "memory").iterdir():
        file.write_bytes(file.read_bytes()[:-9])
    grid.behave = dict.fromkeys(grid.nodes, damaged)
    assert next(run).record["counted"] == [0, 1, 2, 3]


@pytest.mark.parametrize("run", ["../../x", "/etc/x", "", "a/b", "..", "A0", "0" * 65, "a\n", "run"])
def test_a_server_cannot_choose_where_a_client_writes(run: str, tmp_path: Path) -> None:
    task = Task(Problem("", (1, 8, 8), 10, run=run), 1, 3, b"")
    with pytest.raises(ConfigError, match="expected up to 64 hex digits"):
        memory_file({"memory": str(tmp_path)}, task)


def test_a_memory_is_named_by_its_run_and_client(tmp_path: Path) -> None:
    task = Task(Problem("", (1, 8, 8), 10, run="0123456789abcdef"), 1, 3, b"")
    assert memory_file({"memory": str(tmp_path)}, task) == tmp_path / "0123456789abcdef-3.safetensors"
    assert memory_file({}, task) is None
