"""Rules among hostile clients: accuracy by round under every attack, beside an oracle that counts the honest alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fedvote.paper.hostile import RULES
from fedvote.report.axis import Axis, axis_from_zero
from fedvote.report.chart import ORACLE, Chart, Page, accuracy_axis, facts_of, last, line, mean, panels, swatch
from fedvote.report.headline import NONE, percent
from fedvote.report.html_tables import table
from fedvote.report.lines import Series
from fedvote.report.markup import Html, join, tag
from fedvote.report.page import in_common
from fedvote.report.sections import section
from fedvote.runs.config import read

PAPER = {
    "inverse": "Figure 6 (a), inverse sign",
    "label-flip": "Figure 6 (b), data poisoning",
    "random": "Figure 6 (c), random perturbation",
    "omniscient": "Figure 7, the opposite of the result",
}
"""Where the paper has the same attack."""

Run = Mapping[str, Any]


@dataclass(frozen=True)
class Runs:
    """The runs of a file, one a seed, by rule, attack and number hostile."""

    cells: Mapping[tuple[str, str, int], Sequence[Run]]
    clients: int

    def of(self, rule: str, attack: str, hostile: int) -> Sequence[Run]:
        """No attack matters to the oracle, or where nobody is hostile; these are stored once."""
        known = "none" if rule == ORACLE or hostile == 0 else attack
        return self.cells.get((rule, known, hostile), ())

    @property
    def rules(self) -> list[str]:
        """As rules are listed; the oracle last, so that it is drawn above a rule that does as well."""
        found = dict.fromkeys(rule for rule, _, _ in self.cells)
        order = {name: place for place, name in enumerate(RULES)}
        return sorted(found, key=lambda rule: (rule == ORACLE, order.get(rule.partition("@")[0], len(order))))

    @property
    def groups(self) -> list[tuple[int, str]]:
        """Numbers of hostile clients, the most first, and attacks, as far as a rule was tried on them."""
        tried = [(h, attack) for rule, attack, h in self.cells if rule != ORACLE]
        every = dict.fromkeys(tried or [(h, attack) for _, attack, h in self.cells])
        return sorted(every, key=lambda group: -group[0])

    def attacks(self, hostile: int) -> list[str]:
        return [attack for h, attack in self.groups if h == hostile]


def page(data: Mapping[str, Any]) -> Page:
    every = list(data["runs"].values())
    config = read(data["preset"], every[0]["settings"])
    runs = Runs(by_cell(data["runs"]), config.federation.clients)
    by_round, by_number = round_charts(runs), number_charts(runs)
    explain = (
        "Figures 6 and 7 of the paper are about such attacks on 31 clients with CIFAR-10. The code published with it "
        "judges clients by the plurality of the honest alone, which no server knows: that is 'oracle cut'. The oracle, "
        "dashed, counts nobody but the honest. All other rules get every message and are not told whose is hostile. "
        "RULE@RATE is a rule at that learning rate. Lines are means over seeds."
    )
    sections = [section("Accuracy by round, under attack", panels(by_round), explain=explain)]
    if by_number:
        title = "Accuracy after the last round, by number of hostile clients"
        sections.append(section(title, panels(by_number), explain="As Figures 6 and 7 are drawn. Means over seeds."))
    sections += [
        section(
            "Accuracy after the last round", *for_each_number(runs, accuracy_cell),
            explain="Mean over seeds; below it, points below the oracle with as many hostile clients, and seeds.",
        ),
        section(
            "Whose votes counted in the last round", *for_each_number(runs, votes_cell),
            explain="The share of the vote that hostile clients held, and how many honest clients had any. Means over "
            "seeds; rules that do not weigh clients have no such numbers.",
        ),
    ]  # fmt: skip
    facts = facts_of(config, data["environment"], [len(run["accuracy"]) for run in every])
    facts["seeds"] = in_common(sorted({int(key.rpartition("/")[2]) for key in data["runs"]}))
    return Page(f"Among hostile clients: {data['preset']}", facts, sections, [*by_round, *by_number])


def by_cell(runs: Mapping[str, Run]) -> dict[tuple[str, str, int], list[Run]]:
    cells: dict[tuple[str, str, int], list[Run]] = {}
    for key, run in runs.items():
        rule, attack, hostile, _ = key.split("/")
        cells.setdefault((rule, attack, int(hostile)), []).append(run)
    return cells


def over_seeds(runs: Sequence[Run]) -> list[float | None]:
    """The mean accuracy of every round that was measured for all seeds."""
    rounds = zip(*(run["accuracy"] for run in runs), strict=False)
    return [None if None in values else mean(values) for values in rounds]


def final(runs: Sequence[Run]) -> float | None:
    """The mean over seeds of what was measured last."""
    return mean([last(run["accuracy"]) for run in runs])


def crowd(runs: Runs, hostile: int) -> str:
    return f"{hostile} of {runs.clients} hostile" if hostile else "nobody hostile"


def file_name(attack: str) -> str:
    return attack.replace(" %", "").replace(" ", "-")


def round_charts(runs: Runs) -> list[Chart]:
    """One for every attack and number of hostile clients."""

    def one_line(rule: str, attack: str, hostile: int) -> Series:
        ys = over_seeds(runs.of(rule, attack, hostile))
        return line(rule, runs.rules, range(1, len(ys) + 1), ys, lambda index: f"round {index + 1}")

    def chart(hostile: int, attack: str) -> Chart:
        title = f"{attack}, {crowd(runs, hostile)}" if hostile else crowd(runs, hostile)
        name, paper = f"{file_name(attack)}-{hostile}", PAPER.get(attack, "")
        return Chart(name, title, lines[hostile, attack], x, "round", y, paper)

    lines = {(h, attack): tuple(one_line(rule, attack, h) for rule in runs.rules) for h, attack in runs.groups}
    x, y = axes(lines.values())
    return [chart(hostile, attack) for hostile, attack in runs.groups]


def number_charts(runs: Runs) -> list[Chart]:
    """One for every attack that was tried with several numbers of hostile clients, nobody being one of them."""
    numbers = sorted({hostile for hostile, _ in runs.groups})

    def one_line(rule: str, attack: str) -> Series:
        ys = [final(runs.of(rule, attack, hostile)) for hostile in numbers]
        return line(rule, runs.rules, numbers, ys, lambda index: crowd(runs, numbers[index]))

    attacks = dict.fromkeys(attack for hostile, attack in runs.groups if hostile)
    lines = {attack: tuple(one_line(rule, attack) for rule in runs.rules) for attack in attacks}
    lines = {attack: series for attack, series in lines.items() if any(len(each.points) > 1 for each in series)}
    x, y = axes(lines.values())
    return [
        Chart(f"{file_name(attack)}-by-number", attack, series, x, "hostile clients", y, PAPER.get(attack, ""))
        for attack, series in lines.items()
    ]


def axes(lines: Iterable[Sequence[Series]]) -> tuple[Axis, Axis]:
    """One scale for charts side by side."""
    series = list(chain.from_iterable(lines))
    last_x = max((point.x for each in series for point in each.points), default=1)
    return axis_from_zero(last_x, whole=True), accuracy_axis(series)


def for_each_number(runs: Runs, cell: Callable[[Runs, str, str, int], str]) -> list[Html]:
    """A table for every number of hostile clients: a row a rule, a column an attack."""

    def one_table(hostile: int) -> Html:
        attacks = runs.attacks(hostile)
        known = [rule for rule in runs.rules if any(runs.of(rule, attack, hostile) for attack in attacks)]
        rows = [[swatch(rule, runs.rules), *(cell(runs, rule, a, hostile) for a in attacks)] for rule in known]
        head = ["Rule", *(attacks if hostile else ["no attack"])]
        return join(tag("h3", crowd(runs, hostile)), table(head, rows, "numbers"))

    return [one_table(hostile) for hostile in dict.fromkeys(hostile for hostile, _ in runs.groups)]


def accuracy_cell(runs: Runs, rule: str, attack: str, hostile: int) -> str:
    mine = runs.of(rule, attack, hostile)
    reached, best = final(mine), final(runs.of(ORACLE, attack, hostile))
    if reached is None:
        return NONE
    seeds = f"{len(mine)} seed{'s' * (len(mine) > 1)}"
    if best is None or rule == ORACLE:
        return join(percent(reached), tag("small", seeds))
    points = round(100 * (best - reached), 2)
    side = f"{points:.2f} below" if points >= 0 else f"{-points:.2f} above"
    return join(percent(reached), tag("small", f"{side} \N{MIDDLE DOT} {seeds}"))


def votes_cell(runs: Runs, rule: str, attack: str, hostile: int) -> str:
    mine = runs.of(rule, attack, hostile)
    share, kept = (mean([run[name][-1] for run in mine]) for name in ("hostile_share", "honest_kept"))
    if not share and not kept:  # the file says 0 and 0 where no client has a weight
        return NONE
    return join(percent(share), tag("small", f"{kept:.3g} of {runs.clients - hostile} honest"))
