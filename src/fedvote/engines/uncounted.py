"""Rounds in which no client's message had weight: such a run learns nothing, and must not end in silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def uncounted(record: Mapping[str, Any]) -> bool:
    """Whether each client's message was refused, or left out by the reputation rule."""
    without = {str(client) for event in ("refused", "left_out") for client in record.get(event, ())}
    return bool(without) and without.issuperset(map(str, record["clients"]))


def lost_rounds(records: Sequence[Mapping[str, Any]]) -> str:
    """How many of these rounds counted no message, and why; empty if all counted some."""
    if not (lost := [record for record in records if uncounted(record)]):
        return ""
    last = lost[-1]
    refused, left_out = (next(iter(last.get(event, {}).values()), "") for event in ("refused", "left_out"))
    why = refused or f"the rule left out all: {left_out}"
    return f"in {len(lost)} of {len(records)} rounds no message counted; in the last, {why}"
