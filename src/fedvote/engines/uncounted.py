"""Rounds in which no client's message counted: such a run learns nothing, and must not end in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def uncounted(record: Mapping[str, Any]) -> bool:
    """Whether a round counted no client's message."""
    return bool(record.get("refused")) and len(record["refused"]) == len(record["clients"])


def lost_rounds(records: Sequence[Mapping[str, Any]]) -> str:
    """How many of these rounds counted no message, and why; empty if all counted some."""
    if not (lost := [record for record in records if uncounted(record)]):
        return ""
    why = next(iter(lost[-1]["refused"].values()))
    return f"in {len(lost)} of {len(records)} rounds no message counted; in the last, {why}"
