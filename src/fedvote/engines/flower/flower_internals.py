"""Everything that fedvote uses of Flower beyond its public modules `flwr.app`, `flwr.serverapp` and `flwr.clientapp`.

An upgrade of Flower may break this file and no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx
from flwr.app import Array, Message
from flwr.app.message.arraychunk import ArrayChunk
from flwr.common.constant import ErrorCode
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_body,
    get_object_children_ids_from_object_content,
)
from flwr.supercore.inflatable.inflatable_utils import inflatable_class_registry

CONNECTION_ERRORS = (httpx.HTTPError, OSError)
"""Errors that a Grid raises if it cannot reach the SuperLink. Flower documents none; it uses HTTP through httpx."""

Chunks = Mapping[str, ArrayChunk]

__all__ = [  # ErrorCode: the numbers in `flwr.app.Error`, which the public modules do not name
    "CONNECTION_ERRORS",
    "Chunks",
    "ErrorCode",
    "inflate_arrays_by",
    "inflated_nbytes",
    "message_nbytes",
]


def message_nbytes(message: Message) -> int:
    """Bytes of a message as Flower sends it: records, their names, and metadata.

    Flower reports no size. It sends each nested object separately, so the size is the sum of their lengths.
    """
    return sum(len(part.deflate()) for part in get_all_nested_objects(message).values())


def inflated_nbytes(array: bytes, chunks: Chunks) -> int:
    """Bytes that a received array will take in memory.

    The object lists its chunks by their index among its children; a chunk may occur many times.
    """
    names = get_object_children_ids_from_object_content(array)
    places = json.loads(get_object_body(array, Array))["arraychunk_ids"]
    return sum(len(chunks[names[place]].data) for place in places)


def inflate_arrays_by(inflate: Callable[[bytes, Chunks], Array]) -> None:
    """Make Flower call this function for every array that it receives.

    Flower does not limit the size of a received array. It finds the class that inflates an object in a registry, by
    the object's name: this is the one place to set a limit before memory is allocated.
    """

    class Inflating:
        @staticmethod
        def inflate(object_content: bytes, children: Chunks | None = None) -> Array:
            return inflate(object_content, children or {})

    inflatable_class_registry[Array.__qualname__] = cast(Any, Inflating)
