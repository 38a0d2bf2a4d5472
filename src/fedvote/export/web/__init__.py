"""A deployed network as a page that runs it in a browser."""

from __future__ import annotations

from fedvote.export.web.web_folder import export_web, outputs

__all__ = ["export_web", "outputs"]
