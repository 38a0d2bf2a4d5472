"""Log lines of a server or a client: sentences for people, or a JSON object a line for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from fedvote.errors import ConfigError

Log = Callable[..., None]  # (event, sentence, **fields)


def sentence(event: str, text: str, **fields: Any) -> None:
    print(text, file=sys.stderr, flush=True)


def json_line(event: str, text: str, **fields: Any) -> None:
    """{"time": Unix seconds, "event": ..., "text": ..., and the fields}."""
    print(json.dumps({"time": time.time(), "event": event, "text": text, **fields}), file=sys.stderr, flush=True)


LOGS: dict[str, Log] = {"text": sentence, "json": json_line}


def log_of(name: str) -> Log:
    """The log of this name."""
    if name not in LOGS:
        raise ConfigError(f"logs is {name!r}, expected {' or '.join(LOGS)}")
    return LOGS[name]
