"""A method is its hyperparameters: they print, compare, pickle, and go through TOML unchanged."""

from __future__ import annotations

import dataclasses
import pickle
import tomllib
from typing import Any

import pytest

from fedvote.errors import ConfigError
from fedvote.method import Method
from fedvote.methods import METHODS
from fedvote.runs.config import Config
from fedvote.runs.toml_tables import as_table, build, to_toml


def test_every_method_is_in_the_suite_by_its_defaults() -> None:
    assert METHODS and all(issubclass(kind, Method) for kind in METHODS.values())
    for kind in METHODS.values():
        assert kind() == kind()


def test_a_method_prints_every_hyperparameter(method: Method) -> None:
    text = str(method)
    assert text.startswith(f"{type(method).__name__}(")
    for field in dataclasses.fields(method):
        assert f"{field.name}={getattr(method, field.name)!r}" in text


def test_an_unknown_hyperparameter_is_refused_with_the_nearest_known_one(method: Method) -> None:
    kind: Any = type(method)
    for unknown in ("learning_rate", "lrr"):
        with pytest.raises(ConfigError, match=rf"{kind.__name__} has no setting {unknown}; .*; did you mean lr\?"):
            kind(**{unknown: 0.1})


def test_a_method_is_frozen(method: Method) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.lr = 1.0  # type: ignore[misc]


def test_methods_compare_by_their_hyperparameters(method: Method) -> None:
    assert dataclasses.replace(method) == method
    assert dataclasses.replace(method, lr=method.lr * 2) != method


def test_a_method_pickles(method: Method) -> None:
    assert pickle.loads(pickle.dumps(method)) == method


def test_a_method_goes_through_toml_unchanged(method: Method) -> None:
    config = Config(method=method)
    text = to_toml(as_table(config))
    assert build(Config, tomllib.loads(text)) == config
    written = as_table(config)["method"].keys()
    assert written == {"name"} | {field.name for field in dataclasses.fields(method)}
