"""Errors about a configuration name the whole key, attack.share. The part itself knows only its field, share."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fedvote.errors import FedVoteError

SUBJECT = re.compile(r"(\w+)(?= is | names | ')")  # an error's first word, if the sentence is about it


@contextmanager
def full_keys(keys: Mapping[str, str]) -> Iterator[None]:
    """Replace the field that an error names by its key; `keys`: field -> key."""
    try:
        yield
    except FedVoteError as error:
        if (found := SUBJECT.match(text := str(error))) and found[1] in keys:
            error.args = (keys[found[1]] + text[found.end() :],)
        raise


def keys_of(config: Any) -> dict[str, str]:
    """Field -> key, of the fields that a single part of the configuration has."""
    pairs = list(_keys(config))
    count = Counter(field for field, _ in pairs)
    return {field: key for field, key in pairs if count[field] == 1}


def _keys(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The fields that are given, each with its key; those of parts after their owner's."""
    for slot in dataclasses.fields(part):
        value, key = getattr(part, slot.name), path + slot.name
        if value is not None:
            yield slot.name, key
        inside = [(f"{key}[{at}].", each) for at, each in enumerate(value)] if isinstance(value, tuple) else []
        for start, each in inside or [(f"{key}.", value)]:
            if dataclasses.is_dataclass(each):
                yield from _keys(each, start)
