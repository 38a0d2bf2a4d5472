"""The deployed network in formats that other programs run."""

from __future__ import annotations

from fedvote.export.onnx import Exported, export_onnx

__all__ = ["Exported", "export_onnx"]
