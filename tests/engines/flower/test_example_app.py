"""The app folder that users copy: its pieces fit together, and it runs as it is."""

from __future__ import annotations

import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from fedvote.engines.flower.local_federation import APP
from fedvote.engines.flower.server_app import DEFAULTS, serve
from fedvote.errors import ConfigError
from fedvote.runs.config import read
from tests.engines.flower.grid import FakeGrid, after, grid_of

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower_app"
SMALL = "federation.clients=3"


def at_once(clients: int) -> FakeGrid:
    grid = grid_of(clients)
    grid.behave = {node: after(0.0) for node in grid.nodes}
    return grid


@pytest.mark.parametrize("text", [(EXAMPLE / "pyproject.toml").read_text(), APP], ids=["example", "local"])
def test_the_run_configuration_has_every_key_that_can_be_set(text: str) -> None:
    app: dict[str, Any] = tomllib.loads(text)["tool"]["flwr"]["app"]
    assert app["config"].keys() == DEFAULTS.keys()


def test_both_components_are_apps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from federation import client_app, server_app  # type: ignore[import-not-found]

    assert isinstance(server_app.app, ServerApp) and isinstance(client_app.app, ClientApp)


def test_it_runs_to_a_whole_run_folder_and_started_again_does_nothing_twice(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "experiment": "federation.toml",
        "out": str(tmp_path / "run"),
        "set": f"{SMALL} rounds=2",
    }
    for _ in range(2):
        serve(at_once(3), options, EXAMPLE / "federation")
        files = {file.name for file in (tmp_path / "run").iterdir()}
        assert files >= {"config.toml", "metrics.jsonl", "report.html", "network.safetensors", "checkpoint.safetensors"}
        assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2
    assert read(str(tmp_path / "run" / "config.toml")).rounds == 2


def test_another_experiment_does_not_overwrite_the_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "experiment": "federation.toml",
        "out": str(tmp_path / "run"),
        "set": f"{SMALL} rounds=1",
    }
    serve(at_once(3), options, EXAMPLE / "federation")
    with pytest.raises(ConfigError, match=r"another run: it differs in seed"):
        serve(at_once(3), {**options, "set": f"{SMALL} rounds=1 seed=5"}, EXAMPLE / "federation")


def test_how_long_a_server_waits_may_change_when_a_run_goes_on(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "experiment": "federation.toml",
        "out": str(tmp_path / "run"),
        "set": f"{SMALL} rounds=1",
    }
    serve(at_once(3), options, EXAMPLE / "federation")
    serve(at_once(3), {**options, "set": f"{SMALL} rounds=2 flower.deadline=30"}, EXAMPLE / "federation")
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 2


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no key rounds; known: experiment"):
        serve(at_once(3), {"rounds": 3})


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # of a library that Flower uses
def test_the_app_follows_the_conventions_of_flowers_hub(tmp_path: Path) -> None:
    """Flower's own check builds the bundle: version, licence file and both components; the README has front matter."""
    from flwr.cli.build import build_fab_from_disk

    copied = tmp_path / "app"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    assert build_fab_from_disk(copied)
    app = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
    assert app["fab-format-version"] == 1
    _, front, text = (EXAMPLE / "README.md").read_text().split("---\n", 2)
    assert [line.split(":")[0] for line in front.splitlines()] == ["tags", "dataset", "framework"]
    assert text.lstrip().startswith("# ")
    for file in ("client_app.py", "server_app.py"):  # as `flwr new` names them
        assert (EXAMPLE / "federation" / file).is_file()


def commands() -> list[str]:
    """The commands of the README that start Flower's simulation, a line each."""
    text = (EXAMPLE / "README.md").read_text().replace("\\\n", " ")
    return re.findall(r"^flwr run \. local .*$", text, re.MULTILINE)


@pytest.mark.parametrize("command", commands())
def test_flowers_simulation_is_asked_for_a_node_for_each_client(command: str) -> None:
    """It would start two; and the settings of the command are read."""
    settings = re.findall(r"set='([^']*)'", command)
    config = read(str(EXAMPLE / "federation" / "federation.toml"), shlex.split(" ".join(settings)))
    assert re.findall(r"num-supernodes=(\d+)", command) == [str(config.federation.clients)]


def test_a_partitioner_of_flower_datasets_divides_the_apps_data(tmp_path: Path) -> None:
    pytest.importorskip("flwr_datasets", reason="the extra `flwr-datasets` is not installed")
    chosen = f"{SMALL} rounds=1 local.steps=2 partition=flwr:DirichletPartitioner partition.options.alpha=0.5"
    serve(at_once(3), {"experiment": "federation.toml", "out": str(tmp_path), "set": chosen}, EXAMPLE / "federation")
    assert '"counted": [0, 1, 2]' in (tmp_path / "metrics.jsonl").read_text()
