"""How records and pages show the metric of a run: its name, its direction, its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shown:
    """The metric of a record; accuracy, unless the record names another."""

    name: str = "accuracy"
    higher_is_better: bool = True
    percent: bool = True

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Shown:
        return cls(**record.get("metric", {}))

    @property
    def title(self) -> str:
        """The name with a capital, to begin a title."""
        return self.name[:1].upper() + self.name[1:]

    def text(self, value: float | None) -> str:
        if value is None:
            return "none"
        return f"{value:.1%}" if self.percent else f"{value:.4g}"


ACCURACY = Shown()
