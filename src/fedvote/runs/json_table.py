"""A JSON object in a file of a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError


def read_table(path: Path) -> dict[str, Any]:
    """The object in the file; ConfigError if there is anything else in it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError(f"it holds a {type(content).__name__}")
    except (ValueError, TypeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path} is damaged ({error}), expected a JSON object: restore it or delete it") from error
    return content
