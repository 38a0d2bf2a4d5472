"""The install script: upgrades in one step, rolls back, and leaves the old version where the new one fails."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

import fedvote
from fedvote.engines.flower.client_options import NODE_KEYS
from fedvote.engines.flower.server_app import serve
from fedvote.errors import ConfigError
from fedvote.runs.toml_tables import as_table, to_toml
from tests.engines.flower.grid import after, grid_of, small

SERVICE = Path(__file__).parents[3] / "examples" / "service"
UNITS = sorted(SERVICE.glob("*.service"))
PYTHON = """#!/bin/sh
# "python -m venv FOLDER" makes a Python whose "-m pip install" makes a program fedvote
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'PIP'
#!/bin/sh
echo "#!/bin/sh\\n{says}" > "$(dirname "$0")/fedvote"
chmod +x "$(dirname "$0")/fedvote"
PIP
chmod +x "$3/bin/python"
"""


def install(folder: Path, *options: str, says: str = "echo fedvote 1") -> subprocess.CompletedProcess[str]:
    python = folder / "python"
    python.write_text(PYTHON.replace("{says}", says))
    python.chmod(0o755)
    command = ["sh", str(SERVICE / "install.sh"), "--prefix", str(folder / "srv"), *options]
    if "--rollback" not in options:
        command += ["--python", str(python), "--root", str(folder / "root")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def runs(folder: Path) -> str:
    """What the installed program says."""
    return subprocess.run([folder / "srv" / "venv" / "bin" / "fedvote"], capture_output=True, text=True).stdout.strip()


def test_an_upgrade_can_be_taken_back_and_done_again(tmp_path: Path) -> None:
    assert install(tmp_path).returncode == 0 and runs(tmp_path) == "fedvote 1"
    assert install(tmp_path, says="echo fedvote 2").returncode == 0 and runs(tmp_path) == "fedvote 2"
    assert install(tmp_path, "--rollback").returncode == 0 and runs(tmp_path) == "fedvote 1"
    assert install(tmp_path, "--rollback").returncode == 0 and runs(tmp_path) == "fedvote 2"
    assert (tmp_path / "srv").stat().st_mode & 0o077 == 0  # for its owner alone


def test_a_version_that_does_not_start_leaves_the_old_one_running(tmp_path: Path) -> None:
    install(tmp_path)
    failed = install(tmp_path, says="exit 1")
    assert failed.returncode == 2 and "the old one stays" in failed.stderr
    assert runs(tmp_path) == "fedvote 1" and [version.name for version in (tmp_path / "srv/versions").iterdir()] == [
        "1"
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--rollback"], "has no earlier version to go back to"),
        (["--units", "both"], "--units is both, expected server or client"),
        (["--prefx", "x"], "there is no option --prefx; known: --prefix"),
        (["--source"], "--source needs a value"),
        (["--source", "/no/where"], "/no/where does not exist, expected a clone or a wheel"),
    ],
)
def test_a_mistake_is_one_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    script = ["sh", str(SERVICE / "install.sh"), "--prefix", str(tmp_path / "srv"), *options]
    failed = subprocess.run(script, capture_output=True, text=True, check=False)
    assert failed.returncode == 2 and sentence in failed.stderr and not (tmp_path / "srv").exists()


def test_units_run_what_the_script_installs(tmp_path: Path) -> None:
    assert (
        install(tmp_path, "--units", "server").returncode == 0
        and install(tmp_path, "--units", "client").returncode == 0
    )
    installed = sorted((tmp_path / "root/etc/systemd/system").iterdir())
    assert [unit.name for unit in installed] == [unit.name for unit in UNITS]
    for unit in installed:
        assert "/srv/fedvote" not in unit.read_text().replace(str(tmp_path / "srv"), "")
        assert f"PATH={tmp_path / 'srv'}/venv/bin" in unit.read_text()


def test_the_container_is_made_by_the_script_and_the_compose_file_builds_the_container() -> None:
    container, compose = (SERVICE / "Containerfile").read_text(), (SERVICE / "compose.yaml").read_text()
    assert "examples/service/install.sh --prefix /srv/fedvote" in container and "USER fedvote" in container
    assert compose.count("dockerfile: examples/service/Containerfile") == len(re.findall(r"^    image:", compose, re.M))
    assert "FLWR_TELEMETRY_ENABLED=0" in container
    copied = [source for line in re.findall(r"^COPY (.*) \S+$", container, re.M) for source in line.split()]
    assert "src" in copied and all((SERVICE.parents[1] / source).exists() for source in copied)
    assert not {".", "examples", "examples/service"}.intersection(copied)  # `state` has keys: it stays out of the image


def test_the_services_of_the_compose_file_are_given_options_that_the_programs_know() -> None:
    compose = (SERVICE / "compose.yaml").read_text()
    client = re.sub(r"\s+", " ", compose[compose.index("fedvote deploy client") : compose.index("volumes", 900)])
    node = re.findall(r"(\w+)=\"/srv/fedvote/state", client)
    assert set(node) <= set(NODE_KEYS) and len(node) == 3
    assert {"--superlink", "--root-certificates", "--auth-supernode-private-key"} <= set(client.split())


def test_a_run_goes_on_under_another_version_or_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """A newer version reads the folder of an older one; an older one says what it does not know."""
    experiment, run = tmp_path / "small.toml", tmp_path / "run"
    experiment.write_text(to_toml(as_table(small("rounds=1"))))

    def serve_rounds(rounds: int) -> None:
        grid = grid_of(4)
        grid.behave = dict.fromkeys(grid.nodes, after(0.0))
        serve(grid, {"experiment": str(experiment), "out": str(run), "set": f"rounds={rounds}"})

    serve_rounds(1)
    environment = json.loads((run / "environment.json").read_text())
    (run / "environment.json").write_text(json.dumps(environment).replace(fedvote.__version__, "0.0.1"))
    serve_rounds(2)
    assert [json.loads(line)["round"] for line in (run / "metrics.jsonl").read_text().splitlines()] == [1, 2]

    config = run / "config.toml"
    config.write_text(config.read_text().replace("[flower]", "[flower]\nof_a_later_version = 1"))
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    with pytest.raises(ConfigError, match="of_a_later_version"):
        serve_rounds(3)
    assert before == {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
