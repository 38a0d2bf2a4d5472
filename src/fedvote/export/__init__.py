"""Export the deployed network to formats that other programs run."""

from __future__ import annotations

from fedvote.export.c import export_c
from fedvote.export.exported import Exported
from fedvote.export.onnx import export_onnx
from fedvote.export.web import export_web

__all__ = ["Exported", "export_c", "export_onnx", "export_web"]
