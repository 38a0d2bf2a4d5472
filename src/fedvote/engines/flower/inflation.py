"""How large a reply may become: Flower sends an array in chunks, and chunks that are alike only once.

So a few bytes on the wire can be gigabytes in the server's memory, and no limit of a proxy sees them. Flower asks
`inflatable_class_registry` what makes an object of bytes; there the bytes of arrays are added up before any is made.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from flwr.app import Array
from flwr.app.message.arraychunk import ArrayChunk
from flwr.supercore.inflatable.inflatable_object import get_object_body, get_object_children_ids_from_object_content
from flwr.supercore.inflatable.inflatable_utils import inflatable_class_registry

from fedvote.errors import WireError

LISTED = 2**20  # bytes that say which chunks an array has: enough for 70 GiB of them
_left = threading.local()  # bytes: how many more this thread may make, where there is a limit


@contextmanager
def at_most(nbytes: int) -> Iterator[None]:
    """Within, all arrays that this thread makes of what was sent have so many bytes together; WireError if more."""
    _left.nbytes = nbytes
    try:
        yield
    finally:
        del _left.nbytes


class MeasuredArray:
    """What makes arrays, in the place of `Array` itself: the same, if there is room for what they become."""

    @staticmethod
    def inflate(object_content: bytes, children: Mapping[str, Any] | None = None) -> Array:
        if hasattr(_left, "nbytes"):
            _left.nbytes -= _measured(object_content, children or {}, _left.nbytes)
        return Array.inflate(object_content, cast(Any, children))


def _measured(content: bytes, chunks: Mapping[str, ArrayChunk], room: int) -> int:
    """How many bytes an array will have; WireError if there is no room for them."""
    if len(content) > LISTED:
        raise WireError(f"an array whose list of chunks has {len(content)} bytes, expected {LISTED} at most")
    names = get_object_children_ids_from_object_content(content)
    nbytes = sum(
        len(chunks[names[index]].data) for index in json.loads(get_object_body(content, Array))["arraychunk_ids"]
    )
    if nbytes > room:
        raise WireError(f"an array of {nbytes} bytes, expected {room} at most")
    return nbytes


inflatable_class_registry[Array.__qualname__] = cast(Any, MeasuredArray)
