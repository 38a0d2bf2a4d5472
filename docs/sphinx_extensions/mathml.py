"""Equations as MathML, which browsers draw by themselves: no script, and no request to another host."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

log = logging.getLogger(__name__)


def mathml(node: Any, block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        log.warning("%s: %s", error, node.astext(), location=node)
        return ""


def inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node, block=False))
    raise SkipNode


def block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="equation">{mathml(node, block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
