"""The page: header, headline numbers, charts, tables. It loads nothing from the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from string import Template

from fedvote.report.evaluated import evaluated
from fedvote.report.headline import Headline, headlines
from fedvote.report.html_tables import (
    comparison_table,
    configuration,
    events_table,
    network_table,
    rounds_table,
    seeds_table,
    written,
)
from fedvote.report.markup import Html, join, markup, tag
from fedvote.report.measured import method_measurements
from fedvote.report.run_page import Run
from fedvote.report.sections import by_round, by_traffic, client_data, section, vote_weights

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>$title</title>
<style>
$style</style>
</head>
<body>
$body
<script>
$script</script>
</body>
</html>
""")

FACTS = {
    "data": ("data", "name"),
    "partition": ("partition", "name"),
    "model": ("model", "name"),
    "method": ("method", "name"),
    "clients": ("federation", "clients"),
    "seed": ("seed",),
}
"""Fact in the header -> its path in the configuration."""


def page(runs: Sequence[Run]) -> str:
    return shell(title(runs), join(header(runs), tag("main", summary(runs), *charts(runs), *details(runs))))


def shell(title: str, body: Html) -> str:
    """A complete page around a body, with style and script inside."""
    folder = files("fedvote.report")
    return PAGE.substitute(
        title=markup(f"fedvote: {title}"),
        style="".join(folder.joinpath(name).read_text(encoding="utf-8") for name in ("chart.css", "page.css")),
        script=folder.joinpath("page.js").read_text(encoding="utf-8"),
        body=body,
    )


def title(runs: Sequence[Run]) -> str:
    return runs[0].name if len(runs) == 1 else f"{len(runs)} runs compared"


def header(runs: Sequence[Run]) -> Html:
    facts = {name: in_common([run.setting(*path) for run in runs]) for name, path in FACTS.items()}
    facts["clients per round"] = in_common([cohort(run) for run in runs])
    facts["rounds"] = in_common([progress(run) for run in runs])
    if any(run.hostile for run in runs):
        facts["attack"] = in_common([hostile(run) for run in runs])
    if any(run.setting("method", "reputation") or run.setting("method", "aggregate") for run in runs):
        facts["rule"] = in_common([rule(run) for run in runs])
    if any(run.setting("data", "validation") for run in runs):
        facts["evaluated on"] = in_common([evaluated_on(run) for run in runs])
    return heading(title(runs), facts)


def heading(title: str, facts: Mapping[str, str]) -> Html:
    """The top of a page: its title, and the facts that are not empty."""
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items() if value]
    return tag("header", tag("p", "fedvote", class_="brand"), tag("h1", title), tag("dl", *pairs))


def evaluated_on(run: Run) -> str:
    share = run.setting("data", "validation")
    return f"{share:.3g} of the training examples" if isinstance(share, float) and share else "the test examples"


def in_common(values: Sequence[object]) -> str:
    """The value that the runs share, or up to four different values, or how many there are."""
    distinct = list(dict.fromkeys(written(value) for value in values if value is not None))
    return ", ".join(distinct) if len(distinct) <= 4 else f"{len(distinct)} different"


def cohort(run: Run) -> object:
    """Number of clients in the last round; before the first round, the planned number."""
    clients = run.rounds[-1].get("clients") if run.rounds else None
    return len(clients) if clients else run.setting("federation", "cohort") or "all"


def hostile(run: Run) -> str:
    """The attack, and how many clients make it."""
    return f"{written(run.setting('attack', 'name'))} by {len(run.hostile)} clients" if run.hostile else "nobody"


def rule(run: Run) -> object:
    """How clients are weighed: the reputation rule of votes, or the aggregate of float weights."""
    return run.setting("method", "reputation", "name") or run.setting("method", "aggregate", "name")


def progress(run: Run) -> str:
    """Number of finished rounds; if some are missing, also the planned number."""
    done = run.rounds[-1]["round"] if run.rounds else 0
    planned = run.setting("rounds")
    return str(done) if planned in (None, done) else f"{done} of {written(planned)}"


def summary(runs: Sequence[Run]) -> Html:
    if not any(run.rounds for run in runs):
        text = "No round is finished yet. Make the report again after the first round."
        return tag("p", text, class_="notice", role="status")
    if len(runs) > 1:
        over_seeds = seeds_table(runs)
        explain = "Mean and standard deviation after the last round, over runs that differ only in their seed."
        means = section("Over seeds", over_seeds, explain=explain) if over_seeds else Html()
        return join(section("Runs", comparison_table(runs)), means)
    return tag("div", *map(tile, headlines(runs[0])), class_="tiles")


def tile(headline: Headline) -> Html:
    return tag(
        "div", tag("span", headline.label), tag("strong", headline.value), tag("small", headline.note), class_="tile"
    )


def charts(runs: Sequence[Run]) -> list[Html]:
    metrics = dict.fromkeys(run.shown for run in runs if run.rounds)
    lines = [chart(runs, shown) for shown in metrics for chart in (by_round, by_traffic)]
    measured = method_measurements(runs)
    return [*lines, *([measured] if measured else []), client_data(runs)]


def details(runs: Sequence[Run]) -> list[Html]:
    return [
        *each_run(runs, "The deployed network", evaluated),
        *each_run(runs, "Vote weights", vote_weights),
        *each_run(runs, "Votes that did not count", events_table),
        *each_run(runs, "Network", network_table),
        *each_run(runs, "Rounds", lambda run: folded(run) if run.rounds else None),
        section("Configuration", configuration(runs)),
    ]


def each_run(runs: Sequence[Run], title: str, make: Callable[[Run], Html | None]) -> list[Html]:
    """One section with a part for every run that has something to show; no section if none has."""
    parts = [(run.name, part) for run in runs if (part := make(run)) is not None]
    named = [join(tag("h3", name) if len(runs) > 1 else "", part) for name, part in parts]
    return [section(title, *named)] if named else []


def folded(run: Run) -> Html:
    return tag("details", tag("summary", f"{len(run.rounds)} rounds as a table"), rounds_table(run))
