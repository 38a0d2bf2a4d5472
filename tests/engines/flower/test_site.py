"""A client's own data: from a folder or a function on its machine; what does not fit is refused there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedvote.data import load
from fedvote.engines.flower.local_data import clients_site, servers_site
from fedvote.engines.flower.problem import Problem
from fedvote.errors import ConfigError, DataError, Doubt
from fedvote.randomness import Key
from tests.engines.flower.grid import SMALL, small

PROBLEM = Problem(SMALL, (1, 8, 8), 10, (0.3,), (0.4,))


def save(path: Path, count: int = 20, shape: tuple[int, ...] = (1, 8, 8), **more: object) -> None:
    x = np.arange(count * int(np.prod(shape)), dtype=np.uint8).reshape(count, *shape)
    np.savez(path, x=x, y=np.arange(count) % 10, **more)  # type: ignore[arg-type]


def test_a_folder_is_all_that_a_client_trains_on(tmp_path: Path) -> None:
    save(tmp_path / "train.npz")
    made = clients_site(small(), PROBLEM, 2, str(tmp_path), "cpu")
    assert [len(part) for part in made.owned] == [0, 0, 20, 0]
    assert made.data.train.mean == (0.3,) and made.data.train.std == (0.4,)  # scaled as the server says
    rows = made.batches(made.data.train, [Key(0, 1, 2)]).index_KSB
    assert rows.shape == (1, 2, 8) and len(rows.unique()) == 16


def test_a_function_is_called_where_it_lies(tmp_path: Path) -> None:
    code = tmp_path / "hospital.py"
    code.write_text("import numpy as np\ndef load():\n    return np.full((9, 1, 8, 8), 7.0), np.arange(9)\n")
    made = clients_site(small(), replace(PROBLEM, dtype="float32"), 0, f"{code}:load", "cpu")
    assert len(made.data.train) == 9 and torch.all(made.data.train.x == 7)


def test_without_either_a_client_has_its_part_of_the_named_dataset() -> None:
    made = clients_site(small(), PROBLEM, 0, "", "cpu")
    assert sum(len(part) for part in made.owned) == len(load("digits").train)


def test_without_either_a_client_is_refused_where_the_server_has_data_of_its_own(tmp_path: Path) -> None:
    own = replace(PROBLEM, own_data=True)
    with pytest.raises(DataError, match="this node names no data, but the server tests on its own data"):
        clients_site(small(), own, 0, "", "cpu")
    save(tmp_path / "train.npz")
    assert len(clients_site(small(), own, 0, str(tmp_path), "cpu").data.train) == 20


@pytest.mark.parametrize("kind", ["int64", "uint16", "float32"])
def test_inputs_of_another_kind_than_the_servers_are_refused(kind: str, tmp_path: Path) -> None:
    """Bytes are parts of 255, and anything else is not: the same image would be another."""
    np.savez(tmp_path / "train.npz", x=np.full((20, 1, 8, 8), 200, kind), y=np.arange(20) % 10)
    with pytest.raises(DataError, match="inputs that count as float32, expected uint8, as on the server"):
        clients_site(small(), PROBLEM, 0, str(tmp_path), "cpu")
    save(tmp_path / "train.npz")
    with pytest.raises(DataError, match="inputs that count as uint8, expected float32"):
        clients_site(small(), replace(PROBLEM, dtype="float32"), 0, str(tmp_path), "cpu")


def test_all_clients_have_one_network_whatever_their_data(tmp_path: Path) -> None:
    save(tmp_path / "train.npz")
    own, shared = (clients_site(small(), PROBLEM, 1, where, "cpu") for where in (str(tmp_path), ""))
    assert own.network.fingerprint == shared.network.fingerprint
    assert torch.equal(own.network.start.voted, shared.network.start.voted)


@pytest.mark.parametrize("content", [b"", b"noise", b"PK\x03\x04 cut"])
def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "test.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"test\.npz does not hold the arrays x and y"):
        servers_site(small(), str(tmp_path), "cpu")


def test_one_mean_and_deviation_serve_one_channel(tmp_path: Path) -> None:
    save(tmp_path / "test.npz", 40, mean=0.25, std=0.5)
    assert servers_site(small(), str(tmp_path), "cpu").data.train.mean == (0.25,)


@pytest.mark.parametrize(
    ("count", "shape", "expected"),
    [(20, (1, 9, 9), r"shape \(1, 9, 9\), expected \(1, 8, 8\)"), (0, (1, 8, 8), "give at least one example")],
)
def test_data_that_do_not_fit_are_refused(count: int, shape: tuple[int, ...], expected: str, tmp_path: Path) -> None:
    save(tmp_path / "train.npz", count, shape)
    with pytest.raises(DataError, match=expected):
        clients_site(small(), PROBLEM, 0, str(tmp_path), "cpu")


def test_a_client_with_less_than_a_batch_of_its_own_data_is_told(tmp_path: Path) -> None:
    save(tmp_path / "train.npz", 7)
    with pytest.warns(Doubt, match="client 2 has 7 examples, fewer than a batch of 8"):
        made = clients_site(small(), PROBLEM, 2, str(tmp_path), "cpu")
    assert [len(part) for part in made.owned] == [0, 0, 7, 0]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no .*train\.npz"):
        clients_site(small(), PROBLEM, 0, str(tmp_path), "cpu")
    np.savez(tmp_path / "train.npz", x=np.zeros(3))
    with pytest.raises(DataError, match="does not hold the arrays x and y"):
        clients_site(small(), PROBLEM, 0, str(tmp_path), "cpu")
    with pytest.raises(ConfigError, match="there is no Python file"):
        clients_site(small(), PROBLEM, 0, str(tmp_path / "no.py:load"), "cpu")


def test_a_server_with_test_data_of_its_own_knows_nobody_elses(tmp_path: Path) -> None:
    save(tmp_path / "test.npz", classes=np.array(list("abcdefghij")), mean=np.array([0.3]), std=np.array([0.4]))
    made = servers_site(small(), str(tmp_path), "cpu")
    assert [len(part) for part in made.owned] == [0] * 4
    assert len(made.data.test) == len(made.calibration()) == 20
    assert made.data.classes == tuple("abcdefghij") and made.data.train.mean == (0.3,)


def test_a_server_that_calibrates_on_its_test_inputs_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(tmp_path / "test.npz")
    servers_site(small(), str(tmp_path), "cpu")
    said = capsys.readouterr().err
    assert "has no train.npz, so batch norm is calibrated on inputs of test.npz" in said and said.count("\n") == 1
    save(tmp_path / "train.npz", 30)
    assert len(servers_site(small(), str(tmp_path), "cpu").data.train) == 30
    assert capsys.readouterr().err == ""


def test_a_servers_function_returns_a_dataset(tmp_path: Path) -> None:
    code = tmp_path / "held_out.py"
    code.write_text("def load():\n    return 3\n")
    with pytest.raises(DataError, match="returned an int, expected a dataset made by fedvote"):
        servers_site(small(), f"{code}:load", "cpu")
