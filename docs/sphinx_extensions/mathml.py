"""Equations as MathML, which browsers draw by themselves: no script, and no request to another host."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def inline(translator: Any, node: Any) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="equation">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
