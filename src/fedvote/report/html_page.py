"""A complete HTML page, with its style and its scripts inside, and the parts at the top of every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from fedvote.report.markup import Html, markup, tag

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
$head<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; $allowed">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
$body
$loaded<script>
$script</script>
</body>
</html>
""")


def html_page(
    title: str,
    body: Html,
    scripts: Sequence[Traversable],
    styles: Sequence[Traversable] = (),
    *,
    allowed: str,
    head: str = "",
    loaded: str = "",
) -> str:
    """The page around a body.

    `styles`: files that follow the style of reports. `allowed`: sources beyond inline style, in the words of a content
    security policy. `head`: more elements of the head. `loaded`: elements that load scripts of other files.
    """
    own = files("fedvote.report")
    return PAGE.substitute(
        title=markup(f"fedvote: {title}"),
        allowed=allowed,
        head=head,
        style=_text([own.joinpath("chart.css"), own.joinpath("page.css"), *styles]),
        body=body,
        loaded=loaded,
        script=_text(scripts),
    )


def heading(title: str, facts: Mapping[str, str], sentence: str = "") -> Html:
    """The top of a page: its title, a sentence about it, and the facts that are not empty."""
    lead = tag("p", sentence, class_="lead") if sentence else Html()
    return tag("header", tag("p", "fedvote", class_="brand"), tag("h1", title), lead, fact_list(facts))


def fact_list(facts: Mapping[str, str]) -> Html:
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("dl", *pairs) if pairs else Html()


def tile(label: str, value: str, note: str, bar: str = "") -> Html:
    """A number that people look for, large, with a note below."""
    return tag("div", tag("span", label), tag("strong", value), bar, tag("small", note), class_="tile")


def _text(parts: Sequence[Traversable]) -> str:
    return "\n".join(part.read_text(encoding="utf-8") for part in parts)
