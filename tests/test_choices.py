"""A word that a field does not declare is refused in programs, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from fedvote.contracts import check_choices
from fedvote.errors import ConfigError


@dataclass(frozen=True)
class Part:
    size: int = 3
    mode: Literal["fast", "slow"] = "fast"

    def __post_init__(self) -> None:
        check_choices(self)


def test_every_declared_word_is_taken_and_no_other() -> None:
    declared: list[Any] = ["fast", "slow"]
    assert [Part(mode=mode).mode for mode in declared] == declared
    wrong: list[Any] = ["Fast", "", None, ["fast"]]
    for mode in wrong:
        with pytest.raises(ConfigError, match=r"mode is .*, expected one of: fast, slow"):
            Part(mode=mode)
