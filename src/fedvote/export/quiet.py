"""Exporters that say nothing of packages that are not here, of their own code, or of what was done already."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(max(before, logging.ERROR))  # errors are raised, too
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
