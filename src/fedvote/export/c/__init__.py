"""Export the deployed network to C."""

from __future__ import annotations

from fedvote.export.c.compiled import outputs
from fedvote.export.c.program import Program, export_c

__all__ = ["Program", "export_c", "outputs"]
