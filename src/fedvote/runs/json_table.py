"""JSON objects in files of a run folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedvote import contracts
from fedvote.errors import ConfigError


def read_table(path: Path) -> dict[str, Any]:
    """The object in the file; ConfigError if there is anything else in it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"it holds {contracts.kind(content)}")
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is damaged ({error}), expected a JSON object: restore it or delete it") from error
    return content


def without_nan(value: Any) -> Any:
    """NaN and infinities become None: JSON has neither."""
    if isinstance(value, Mapping):
        return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(without_nan, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
