"""Pages of made-up runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedvote.report import write_report

MakeRun = Callable[..., Path]


def report(*folders: Path) -> str:
    return write_report(folders, folders[0] / "report.html").read_text(encoding="utf-8")


def chart_blocks(page: str) -> list[Any]:
    return [json.loads(block) for block in re.findall(r'<script type="application/json">(.*?)</script>', page)]
