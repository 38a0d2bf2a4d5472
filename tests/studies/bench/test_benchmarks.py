"""What holds for all benchmarks: they are listed, take few options, and refuse the others in one sentence."""

from __future__ import annotations

import json
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fedvote.cli import main
from fedvote.errors import ConfigError
from fedvote.reputation import REPUTATIONS
from fedvote.runs.config import read
from fedvote.runs.toml_tables import as_table
from fedvote.studies.bench import BENCHMARKS, OPTIONS, bench, benchmark, configuration, judge, peers
from fedvote.studies.bench.counting_proxy import CountingProxy
from fedvote.studies.rows import Rows, chosen, table

ASKED: dict[str, Any] = {"model": ["vgg7"], "clients": [3], "only": ["some"], "preset": "quickstart", "set": ["a=1"],
                         "rounds": 1, "device": "cpu"}  # fmt: skip
TAKEN = {
    "codec": {"preset", "set", "rounds", "only", "device"}, "tally": set(),
    "judge": {"only", "clients", "device"}, "server": {"clients", "only"},
    "simulate": {"model", "clients", "device"}, "secure": {"only", "clients"},
    "private-votes": {"clients", "rounds", "device"},
    "infer": {"model"}, "flower": {"preset", "set", "rounds", "only"}, "turn": {"preset", "set", "rounds", "only"},
    "late": {"preset", "set", "rounds", "only"}, "churn": {"only"},
    "slow-link": {"preset", "set", "rounds", "only"}, "peers": {"only", "rounds", "device"},
}  # fmt: skip


def test_named_alone_the_command_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bench"])
    said = capsys.readouterr().out
    assert stop.value.code == 0 and all(f"{name} " in said and one.about in said for name, one in BENCHMARKS.items())


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_is_taken_or_refused_in_one_sentence(name: str, option: str) -> None:
    if option in TAKEN[name]:
        assert benchmark(name, **{option: ASKED[option]}).keywords == {option: ASKED[option]}
    else:
        with pytest.raises(ConfigError, match=f"^the benchmark {name} does not use --{option}; it takes "):
            benchmark(name, **{option: ASKED[option]})


def test_what_is_not_asked_for_is_as_the_benchmark_has_it() -> None:
    assert benchmark("judge", only=None, clients=[], set=None).keywords == {}


def test_a_benchmark_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="there is no benchmark 'speed'; known: codec, tally, "):
        benchmark("speed")


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ConfigError, match="--rounds is 0, expected a whole number above 0"):
        benchmark("flower", rounds=0)


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "fedvote.studies.bench.codec", raising=False)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ConfigError, match=r"codec needs zstandard: pip install '\.\[bench\]' in a clone"):
        benchmark("codec")


def test_numbers_and_page_are_written_with_what_was_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = judge.bench
    monkeypatch.setattr(judge, "bench", lambda only, clients: measure(only, clients, "cpu", weights=64))
    file, page = tmp_path / "numbers.json", tmp_path / "page.html"
    shown = bench("judge", file, page, only=["cut"], clients=[3, 4])
    found = json.loads(file.read_text())
    assert found["asked"] == {"only": ["cut"], "clients": [3, 4]} and "torch" in found["environment"]
    assert [(row["rule"], row["clients"]) for row in found["rows"]] == [("cut", 3), ("cut", 4)]
    assert shown == table(found["rows"]) and "benchmark: judge" in page.read_text()


def test_a_file_has_every_parameter_with_defaults() -> None:
    assert configuration(benchmark("judge", clients=[3])) == {
        "only": (), "clients": [3], "device": "auto", "weights": judge.WEIGHTS
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if "preset" in TAKEN[name]])
def test_a_file_has_every_key_of_the_preset_as_it_was_run(name: str) -> None:
    """With the benchmark's own settings: over Flower three clients, not the preset's eleven."""
    run = configuration(benchmark(name, preset="quickstart", set=["local.steps=7"], rounds=2))["run"]
    assert run.keys() == as_table(read("quickstart")).keys()
    assert (run["rounds"], run["local"]["steps"], run["data"]["name"]) == (2, 7, "digits")
    clients = {"codec": 11, "flower": 3, "turn": 3, "late": 15, "slow-link": 4}
    assert run["federation"]["clients"] == clients[name]


def test_every_rule_is_timed_and_the_first_time_apart() -> None:
    rows = judge.bench(clients=[4], device="cpu", weights=64)
    assert [row["rule"] for row in rows] == list(REPUTATIONS)
    for row in rows:
        first, *others = row["each"]
        assert (row["first_seconds"], row["seconds"], row["most_seconds"]) == (first, min(others), max(others))


def test_peers_are_started_from_a_clone_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"there is no peers.run\.py here: run `fedvote bench peers` from the root"):
        peers.bench()


def test_the_rows_of_peers_are_what_their_program_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "run.py").write_text("import json, sys; print(json.dumps([{'told': sys.argv[1:]}]))")
    monkeypatch.chdir(tmp_path)
    assert peers.bench(["loop", "fedvote"], 3, "cpu") == [{"told": ["cpu", "3", "fedvote", "loop"]}]


def test_a_table_has_a_column_for_every_number_and_none_for_lists() -> None:
    rows: Rows = [{"way": "a", "seconds": 0.123456, "each": [1, 2]}, {"way": "bb", "seconds": None, "each": []}]
    assert table(rows) == "way  seconds\n  a   0.1235\n bb         "


def test_rows_are_chosen_in_the_order_that_they_have() -> None:
    assert chosen(["c", "a"], "abc", "letters") == ["a", "c"] and chosen([], "abc", "letters") == ["a", "b", "c"]
    with pytest.raises(ConfigError, match="there is no row 'd' in 'letters'; it has: a; b; c"):
        chosen(["d"], "abc", "letters")


def test_a_proxy_counts_what_passes_in_both_directions() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = CountingProxy(server.getsockname()[1])
        with connected(proxy.port) as client:
            there, _ = server.accept()
            with there:
                for source, sink, nbytes in ((client, there, 1000), (there, client, 30)):
                    source.sendall(b"x" * nbytes)
                    left = nbytes
                    while left:
                        left -= len(sink.recv(left))
        assert proxy.passed == {"up": 1000, "down": 30}


def connected(port: int) -> socket.socket:
    """As soon as the proxy's thread listens."""
    for _ in range(200):
        with suppress(OSError):
            return socket.create_connection(("127.0.0.1", port), timeout=10)
        time.sleep(0.05)
    raise AssertionError("the proxy does not listen")
