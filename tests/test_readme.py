"""What the README shows works as shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

README = Path(__file__).parent.parent / "README.md"


def test_the_ten_lines_train_a_binary_network() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["snapshot"].record["accuracy"] > 0.85
    assert set(names["binary"][0].weight.unique().tolist()) == {-1.0, 1.0}
    x, y = names["data"].test.take(slice(None))
    one_at_a_time = torch.cat([names["binary"](row[None]) for row in x]).argmax(1)
    assert float((one_at_a_time == y).float().mean()) > 0.85


def test_every_file_it_links_to_is_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
