"""The page: header, headline numbers, charts, tables. It loads nothing from the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files

from fedvote.report.client_maps import client_data, vote_weights
from fedvote.report.evaluated import evaluated
from fedvote.report.headline import Headline, headlines
from fedvote.report.html_page import fact_list, heading, html_page, tile
from fedvote.report.html_tables import (
    comparison_table,
    configuration,
    events_table,
    every_run,
    network_table,
    rounds_table,
)
from fedvote.report.markup import Html, join, meter, tag
from fedvote.report.measured import method_measurements
from fedvote.report.over_seeds import Group, groups_of, several_seeds
from fedvote.report.read_run import Run
from fedvote.report.run_sentence import attack_name, clients_per_round, in_common, rule, run_sentence, written
from fedvote.report.sections import by_round, by_traffic, folded, section

ALLOWED = "script-src 'unsafe-inline'; img-src data:"
OVER_SEEDS = "Means over runs that differ only in their seed, the metric with its standard deviation."
FLOAT32 = (
    "Smaller than float32: compared with the same messages in 4 bytes a weight, of all weights that at least one of "
    "the runs with this network sends. Bits per weight count the weights that the run itself sends."
)


def page(runs: Sequence[Run]) -> str:
    groups = groups_of(runs)
    body = tag("main", answer(groups), facts(runs), *charts(groups), *details(groups))
    return shell(title(runs), join(heading(title(runs), {}, run_sentence(runs)), body))


def shell(title: str, body: Html) -> str:
    """A page of charts and tables around a body."""
    return html_page(title, body, [files("fedvote.report").joinpath("page.js")], allowed=ALLOWED)


def title(runs: Sequence[Run]) -> str:
    return runs[0].name if len(runs) == 1 else f"{len(runs)} runs compared"


def facts(runs: Sequence[Run]) -> Html:
    """Settings that the sentence at the top leaves out, those of several runs together."""
    facts = {
        "partition": in_common([partition(run) for run in runs]),
        "clients per round": in_common([clients_per_round(run) for run in runs]),
        "seed": in_common([run.setting("seed") for run in runs]),
    }
    if any(run.hostile for run in runs):
        facts["attack"] = in_common([hostile(run) for run in runs])
    if any(run.hostile or record.get("vote_weight") for run in runs for record in run.rounds[:1]):
        facts["rule"] = in_common([rule(run) for run in runs])
    if any(bound(run) != "unbounded" for run in runs):
        facts["bound on influence"] = in_common([bound(run) for run in runs])
    if any(run.setting("data", "validation") for run in runs):
        facts["evaluated on"] = in_common([evaluated_on(run) for run in runs])
    return fact_list(facts)


def bound(run: Run) -> object:
    return run.setting("method", "influence", "name") or "unbounded"


def partition(run: Run) -> str:
    """How examples are dealt to clients, such as: dirichlet, alpha 0.5."""
    table = run.setting("partition")
    options = table.items() if isinstance(table, Mapping) else ()
    return ", ".join(written(value) if key == "name" else f"{key} {written(value)}" for key, value in options if value)


def evaluated_on(run: Run) -> str:
    share = run.setting("data", "validation")
    return f"{share:.3g} of the training examples" if isinstance(share, float) and share else "the test examples"


def hostile(run: Run) -> str:
    """The attack, and how many clients make it."""
    clients = f"{len(run.hostile)} clients" if len(run.hostile) > 1 else "one client"
    return f"{attack_name(run)} by {clients}" if run.hostile else "nobody"


def answer(groups: Sequence[Group]) -> Html:
    """The numbers that people look for first."""
    if not any(run.rounds for group in groups for run in group.runs):
        text = "No round is finished yet. Make the report again after the first round."
        return tag("p", text, class_="notice", role="status")
    if several_seeds(groups):
        return section("Over seeds", comparison_table(groups), explain=f"{OVER_SEEDS} {FLOAT32}")
    if len(groups) > 1:
        return section("Runs", comparison_table(groups), explain=FLOAT32)
    return tag("div", *map(headline_tile, headlines(groups[0].runs[0])), class_="tiles answer")


def headline_tile(headline: Headline) -> Html:
    bar = meter(headline.share) if headline.share is not None else Html()
    return tile(headline.label, headline.value, headline.note, bar)


def charts(groups: Sequence[Group]) -> list[Html]:
    metrics = dict.fromkeys(group.shown for group in groups if group.runs[0].rounds)
    return [chart(groups, shown) for shown in metrics for chart in (by_round, by_traffic)]


def details(groups: Sequence[Group]) -> list[Html]:
    runs = [run for group in groups for run in group.runs]
    measured = method_measurements(groups)
    return [
        *([section("Every run", every_run(groups))] if several_seeds(groups) else []),
        *each_run(runs, "The deployed network", evaluated),
        *each_run(runs, "Who was left out, and why", events_table),
        *each_run(runs, "Vote weights", vote_weights),
        *([measured] if measured else []),
        client_data(runs),
        *each_run(runs, "Network", network_table),
        *each_run(runs, "Rounds", all_rounds if len(runs) == 1 else rounds_table),
        section("Configuration", configuration(runs)),
    ]


def each_run(runs: Sequence[Run], title: str, make: Callable[[Run], Html | None]) -> list[Html]:
    """One section with a part for every run that has something to show; no section if none has."""
    parts = [(run.name, part) for run in runs if (part := make(run)) is not None]
    return [section(title, *(folded(name, part, len(runs)) for name, part in parts))] if parts else []


def all_rounds(run: Run) -> Html | None:
    rows = rounds_table(run)
    rounds = f"{len(run.rounds)} rounds" if run.rounds[1:] else "One round"
    return tag("details", tag("summary", f"{rounds} as a table"), rows) if rows else None
