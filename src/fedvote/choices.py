"""Fields that take one of a few words: declared as Literal, and checked in programs as in tables."""

from __future__ import annotations

import typing
from typing import Any, Literal

from fedvote.errors import ConfigError


def check_choices(part: Any) -> None:
    """Refuse a value that is none of those that its field declares."""
    for name, kind in typing.get_type_hints(type(part)).items():
        if typing.get_origin(kind) is Literal and getattr(part, name) not in (choices := typing.get_args(kind)):
            raise ConfigError(f"{name} is {getattr(part, name)!r}, expected one of: {', '.join(map(str, choices))}")
