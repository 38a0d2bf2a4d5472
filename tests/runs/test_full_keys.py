"""Errors of a configuration name the key as it is typed; in programs, where a part has no key, they name its field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedvote.attacks import Layer
from fedvote.errors import ConfigError, DataError, FedVoteError
from fedvote.runs.config import Config
from fedvote.runs.field_types import fields_of, is_table_class
from fedvote.runs.folder import RunFolder
from fedvote.runs.full_keys import full_keys, keys_of
from fedvote.runs.simulated_run import run
from fedvote.runs.toml_tables import build
from tests.runs.tables import made, refuse

VALUES = (-7, -0.5, 0, 0.75, 7_000_000, float("inf"), [-7], ["x"], "x")


def parts(kind: type = Config, above: tuple[type, ...] = ()) -> Iterator[type]:
    """A table of a configuration, and every part that can be chosen in it."""
    yield kind
    for slot, hint in fields_of(kind).values():
        inside = slot.metadata["registry"].values() if "registry" in slot.metadata else [hint]
        for each in inside:
            if is_table_class(each) and each not in (kind, *above):
                yield from parts(each, (kind, *above))


PARTS = sorted(set(parts()), key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
def test_every_error_of_a_value_begins_with_a_key_of_its_part(kind: type) -> None:
    fields = fields_of(kind)
    for name, (slot, _) in fields.items():
        for value in () if "registry" in slot.metadata else VALUES:
            try:
                build(kind, {name: value}, "the.part")
            except ConfigError as error:
                begun = re.match(r"(?:the\.part|data|inputs|flower|secure)\.(\w+)\b", str(error))
                assert begun and begun[1] in fields, f"{name} = {value}: {error}"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["attack=layer", "attack.share=2"], "attack.share is 2.0, expected a number above 0, at most 1"),
        (["attack=backdoor", "attack.size=0"], "attack.size is 0 and parts 4, expected 1 or more of each"),
        (["method.reputation=camps", "method.reputation.gap=0"], "method.reputation.gap is 0.0, expected a number"),
        (["method.influence=trimmed", "method.influence.share=1"], "method.influence.share is 1.0, expected"),
        (["method.sign_schedule.hold=1"], "method.sign_schedule.hold is 1.0, expected a share of the run"),
        (["local.lr_schedule=cosine", "local.lr_schedule.cycles=0"], "local.lr_schedule.cycles is 0, expected 1 or"),
        (["partition=shards", "partition.shards_per_client=0"], "partition.shards_per_client is 0, expected 1 or more"),
        (["federation.cohort=12"], "federation.cohort is 12, expected 0 (everybody) to 11"),
        (["method.levels=1"], "method.levels is 1, expected 0 (all) or 2 to"),
        (["method.optimizer=LBFGS"], "method.optimizer 'LBFGS' is not one of the element-wise optimisers"),
        (["rounds=0"], "rounds is 0, expected 1 or more"),
    ],
)
def test_a_value_out_of_range_is_named_by_its_key(settings: list[str], sentence: str) -> None:
    assert refuse(sentence, "", *settings).startswith(sentence)


@pytest.mark.parametrize("setting", ["flower.grace=-1", "data.validation=1", "secure.threshold=2"])
def test_a_key_is_not_named_twice(setting: str) -> None:
    key = setting.partition("=")[0]
    said = refuse(f"{key} is ", "", *(["secure=tally"] if key.startswith("secure") else []), setting)
    assert said.startswith(key) and said.count(key) == 1


def test_in_a_program_a_part_names_its_field() -> None:
    with pytest.raises(ConfigError, match=r"^share is 2.0, expected a number above 0"):
        Layer(share=2)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (["local.batch=1"], "local.batch is 1, expected 2 or more"),
        (['model.keep_float=["head"]'], "model.keep_float names 'head', expected a layer"),
        (
            ["method.reputation=camps", "method.reputation.trusted=[0, 1, 11]"],
            "method.reputation.trusted is [0, 1, 11]",
        ),
        (["attack=backdoor", "attack.size=9"], "attack.size is 9, expected at most 8: inputs have the shape"),
        (["attack=layer", 'attack.layers=["no"]', "federation.hostile=1"], "attack.layers is ('no',), expected names"),
        (['data.augment=[{name = "crop", pixels = 8}]'], "data.augment[0].pixels is 8, expected 1 to 7 for a crop"),
        (
            ['data.augment=[{name = "noise", deviation = 0}]'],
            "data.augment[0].deviation is 0.0, expected a finite number",
        ),
    ],
)
def test_a_value_that_does_not_fit_the_others_is_named_by_its_key(
    settings: list[str], sentence: str, tmp_path: Path
) -> None:
    config = made("", "local.steps=1", *settings)
    with pytest.raises(FedVoteError) as refusal:
        list(run(config, RunFolder(tmp_path / "run"), device="cpu"))
    assert str(refusal.value).startswith(sentence)


def test_a_field_of_two_parts_has_no_key_of_its_own() -> None:
    config = made("", 'data.augment=["flip", "crop", "cutout"]', "attack=layer", "method.influence=trimmed")
    keys = keys_of(config)
    assert not {"pixels", "share"} & keys.keys()
    assert keys["batch"] == "local.batch" and keys["alpha"] == "partition.alpha"


@pytest.mark.parametrize("said", ["a label is 12", "batches are empty", "the batch is 3", "batch.size is 3"])
def test_an_error_about_something_else_stays(said: str) -> None:
    with (
        pytest.raises(DataError, match=f"^{said}$"),
        full_keys({"a": "method.normalisation.a", "batch": "local.batch"}),
    ):
        raise DataError(said)
