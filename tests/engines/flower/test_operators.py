"""What operators see: Prometheus' numbers, a health check, logs of JSON lines, and a client's own turns."""

from __future__ import annotations

import json
import traceback
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict

from fedvote.cli import main
from fedvote.engines.flower.client_log import summary
from fedvote.engines.flower.local_federation import free_port
from fedvote.engines.flower.log_lines import json_line, log_of
from fedvote.engines.flower.metrics_page import RunNumbers, serve_page
from fedvote.engines.flower.server import NoQuorum
from fedvote.engines.flower.server_app import _options, make, serve
from fedvote.errors import ConfigError
from fedvote.runs.toml_tables import as_table, to_toml
from tests.engines.flower.grid import after, elect, grid_of, run, small

RECORD = {
    "round": 1, "accuracy": 0.5, "seconds": 2.0, "uplink_bytes": 30, "downlink_bytes": 7, "counted": [0, 1],
    "refused": {2: "no"}, "absent": [3, 4],
}  # fmt: skip


def numbers(alive: float = 0.0) -> RunNumbers:
    return RunNumbers(online=lambda: 3, strangers=lambda: 1, alive=lambda: alive, clients=5, patience=60)


def test_the_page_has_totals_over_rounds_and_the_last_round_in_prometheus_format() -> None:
    page = numbers()
    page.add(RECORD, 100.0)
    page.add({**RECORD, "round": 2, "accuracy": None, "absent": []}, 200.0)
    lines = list(page.lines())
    for line in (
        "fedvote_rounds_total 2.0", "fedvote_uplink_bytes_total 60.0", "fedvote_refused_total 2.0",
        "fedvote_absent_total 2.0", "fedvote_last_round 2.0", "fedvote_last_accuracy 0.5", "fedvote_clients_online 3.0",
        "fedvote_last_round_timestamp_seconds 200.0", "# TYPE fedvote_rounds_total counter", "fedvote_healthy 1.0",
    ):  # fmt: skip
        assert line in lines
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("alive", "status"), [(59.0, 200), (61.0, 503)])
def test_a_server_without_a_sign_of_life_is_ill(alive: float, status: int) -> None:
    server = serve_page(numbers(alive), port := free_port())
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert answer.status == status
    except urllib.error.HTTPError as error:
        assert error.code == status
    finally:
        server.shutdown()
        server.server_close()


def test_a_port_that_is_taken_is_one_sentence() -> None:
    server = serve_page(numbers(), port := free_port())
    with pytest.raises(ConfigError, match=f"metrics is {port}, expected a free port"):
        serve_page(numbers(), port)
    server.shutdown()
    server.server_close()


def test_json_logs_are_objects_with_the_round_s_record(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    experiment = tmp_path / "small.toml"
    experiment.write_text(to_toml(as_table(small("rounds=2"))))
    grid = grid_of(4)
    grid.behave = dict.fromkeys(grid.nodes, after(0.0))  # the server's clock is the real one
    serve(
        grid, {"experiment": str(experiment), "out": str(tmp_path / "run"), "logs": "json", "set": "flower.poll=0.01"}
    )
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["record"]["round"] for line in lines if line["event"] == "round"] == [1, 2]
    with pytest.raises(ConfigError, match="logs is 'xml', expected text or json"):
        log_of("xml")
    assert log_of("json") is json_line and _options({})["metrics"] == ""


def test_a_clients_operator_sees_its_own_rounds_and_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    grid, log = grid_of(4), tmp_path / "turns.jsonl"
    grid.node_config = {"log": str(log)}
    records = [snapshot.record for snapshot in elect(small("rounds=2"), grid, tmp_path / "run")]
    (row,) = summary(log)
    assert row["rounds"] == row["last_round"] == 2 and row["failures"] == 0  # four clients share this log
    assert row["kB_up"] * 1e3 == pytest.approx(sum(record["uplink_bytes"] for record in records))
    assert log.stat().st_mode & 0o077 == 0
    with pytest.raises(SystemExit, match="0"):
        main(["deploy", "status", str(log)])
    assert "kB_up" in capsys.readouterr().out


def test_a_damaged_client_log_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("[1]\n")
    with pytest.raises(ConfigError, match="is not a client's log"):
        summary(tmp_path / "log")


def test_a_mistake_of_the_job_shows_no_frame_of_fedvote_but_the_apps_own() -> None:
    """Flower prints the traceback of what the app raises: the sentence is not to drown in it."""
    context = Context(1, 1, {}, RecordDict(), {"set": "federation.cleints=3"})
    with pytest.raises(ConfigError, match="did you mean clients") as raised:
        make()(grid_of(3), context)
    files = [Path(frame.filename).name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert files[-1] == "server_app.py" and not {"config.py", "toml_tables.py"}.intersection(files)


def test_a_mistake_of_a_client_is_one_sentence_in_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = grid_of(4)
    grid.node_config = {"data": str(tmp_path / "nowhere")}
    with pytest.raises(NoQuorum):
        run(tmp_path / "run", {}, "rounds=1", grid=grid)
    said = capsys.readouterr().err
    assert "fedvote: there is no" in said and "Traceback" not in said
