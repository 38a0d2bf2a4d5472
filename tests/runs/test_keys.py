"""Every key of a configuration is explained, with the default it has."""

from __future__ import annotations

import dataclasses

import pytest
from typer.testing import CliRunner

from fedvote.cli import app
from fedvote.errors import ConfigError
from fedvote.methods import METHODS
from fedvote.reputation import REPUTATIONS
from fedvote.runs.config import Config
from fedvote.runs.keys import settings
from fedvote.runs.toml_tables import as_table, build


def test_every_key_says_what_it_means() -> None:
    assert [setting.key for setting in settings() if not setting.meaning] == []


@pytest.mark.parametrize("method", METHODS)
def test_the_keys_of_a_written_configuration_are_explained_and_no_others(method: str) -> None:
    written = as_table(build(Config, {"method": {"name": method}}))
    of = {s.key for s in settings() if s.of == f"method ({method})"}
    assert of == {f"method.{key}" for key in written["method"]} - {"method.name"}
    for section in ("data", "federation", "local", "engine", "flower"):
        given = {s.key for s in settings() if s.of == section and s.default != "not given"}
        assert given == {f"{section}.{key}" for key in written[section]}


def test_defaults_are_those_of_the_part_that_is_named() -> None:
    rates = {s.of: s.default for s in settings("method.lr")}
    assert rates == {f"method ({name})": str(kind().lr) for name, kind in METHODS.items()}
    assert {s.of for s in settings("method.reputation.")} == {
        f"method.reputation ({name})" for name, kind in REPUTATIONS.items() if dataclasses.fields(kind)
    }


def test_a_key_that_is_not_there_is_refused_with_those_at_the_top() -> None:
    with pytest.raises(ConfigError, match=r"no key begins with 'mehtod'.*local.*method"):
        settings("mehtod")


def test_a_key_without_its_table_is_found() -> None:
    with pytest.raises(ConfigError, match=r"did you mean method\.reputation\?$"):
        settings("reputation")
    with pytest.raises(ConfigError, match=r"did you mean federation\.clients\?$"):
        settings("clients")


def test_the_command_shows_those_asked_for() -> None:
    shown = CliRunner().invoke(app, ["keys", "federation"])
    assert shown.exit_code == 0 and "federation.cohort = 0  # number of clients drawn" in shown.output
    assert "method" not in shown.output


def test_one_part_alone_is_asked_for_by_its_name() -> None:
    assert {s.of for s in settings("partition=shards")} == {"", "partition (shards)"}
    with pytest.raises(ConfigError, match="method 'fedsgd' is not known; known: fedvote"):
        settings("method=fedsgd")
    with pytest.raises(ConfigError, match="'rounds=3' names a part, but rounds has none"):
        settings("rounds=3")


def test_the_command_tells_equal_keys_of_equal_parts_once() -> None:
    shown = CliRunner().invoke(app, ["keys"]).output
    assert shown.count(".wakes = 10  # the first round in which it inverts its message") == 1
    assert "\nattack.first: the keys of each part as for attack, above\n" in shown
    alone = CliRunner().invoke(app, ["keys", "attack.first"]).output
    assert "attack.first.wakes = 10" in alone and "above\n" not in alone
