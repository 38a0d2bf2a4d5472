"""Lengths that a coder process may still be counting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from fedvote.core import Length


def wait_for(length: Length) -> int:
    return length if isinstance(length, int) else length.result()


def then(length: Length, change: Callable[[int], int]) -> Length:
    """Apply `change` to a length, now or as soon as it is known."""
    if isinstance(length, int):
        return change(length)
    changed: Future[int] = Future()

    def finish(length: Future[int]) -> None:
        if error := length.exception():
            changed.set_exception(error)
        else:
            changed.set_result(change(length.result()))

    length.add_done_callback(finish)
    return changed
