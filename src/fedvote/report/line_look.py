"""The look of a line among many: seven colours, and four patterns of dashes for lines of the same colour.

Seven colours can be told apart, on a light page and on a dark one, by colour-blind readers too. More shades cannot.
"""

from __future__ import annotations

from fedvote.report.markup import Html, join, tag

COLOURS = 7
"""Number of colours --c0, --c1, ... in the style sheet."""

PATTERNS = ("", "second", "third", "fourth")
"""Classes of the style sheet, for the first seven lines, the next seven, and so on."""


def colour_style(colour: int | None) -> str:
    return f"--series: {'var(--soft)' if colour is None else f'var(--c{colour % COLOURS})'}"


def patterned(dash: str, index: int, colours: int = COLOURS) -> str:
    """The classes of a line: `dash`, and its pattern, if the first lines have used up all colours."""
    return f"{dash} {PATTERNS[index // colours % len(PATTERNS)]}".rstrip()


def swatched(name: str, colour: int, dash: str) -> Html:
    """A name behind a small sample of its line: the colour, and the pattern among the classes in `dash`."""
    pattern = dash.partition(" ")[2]
    return join(tag("i", class_=f"swatch {pattern}".rstrip(), style=colour_style(colour)), name)
