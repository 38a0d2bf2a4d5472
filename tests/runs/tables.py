"""Configurations from TOML and settings, made or refused."""

from __future__ import annotations

import re
import tomllib

import pytest

from fedvote.errors import ConfigError
from fedvote.runs.config import Config
from fedvote.runs.toml_tables import apply, build


def made(text: str, *settings: str) -> Config:
    table = tomllib.loads(text)
    for setting in settings:
        apply(table, setting)
    config: Config = build(Config, table)
    return config


def refuse(sentence: str, text: str, *settings: str) -> str:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as refusal:
        made(text, *settings)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)
