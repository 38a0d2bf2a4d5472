"""`fedvote list`: everything that a configuration can name."""

from __future__ import annotations

import json

import pytest

from fedvote.runs.catalogue import KINDS, REGISTRIES, registry
from fedvote.runs.presets import presets
from tests.cli.command import Command


def names_of(kind: str) -> list[str]:
    return list(registry(kind) if kind in REGISTRIES else presets())


def test_list_names_everything_there_is(fedvote: Command) -> None:
    outcome = fedvote("list")
    assert outcome.code == 0 and outcome.err == ""
    for kind in KINDS:
        assert f"{kind}:\n" in outcome.out
        for name in names_of(kind):
            assert f"\n  {name} " in outcome.out


@pytest.mark.parametrize("kind", KINDS)
def test_list_of_one_kind_as_json_says_a_line_about_each(kind: str, fedvote: Command) -> None:
    outcome = fedvote("list", kind, "--json")
    assert outcome.code == 0
    (listed,) = json.loads(outcome.out).items()
    assert listed[0] == kind and list(listed[1]) == names_of(kind)
    assert all(about and "\n" not in about for about in listed[1].values())


def test_list_as_json_has_every_kind(fedvote: Command) -> None:
    assert list(json.loads(fedvote("list", "--json").out)) == list(KINDS)
