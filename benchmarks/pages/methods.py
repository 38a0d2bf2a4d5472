"""Methods, each at its best rate: accuracy by round and by uplink, and what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from fedvote.models import MODELS
from fedvote.network.network import Network
from fedvote.report.axis import axis_from_zero, log_axis
from fedvote.report.chart import Chart, Page, accuracy_axis, facts_of, last, line, swatch
from fedvote.report.headline import decimal, percent
from fedvote.report.html_tables import table
from fedvote.report.lines import Series
from fedvote.report.markup import Html, tag
from fedvote.report.sections import section
from fedvote.runs.config import Config, read

SHAPES = {  # of one input, and the number of classes
    "digits": ((1, 8, 8), 10),
    "fashion-mnist": ((1, 28, 28), 10),
    "cifar10": ((3, 32, 32), 10),
    "femnist": ((1, 28, 28), 62),
}
PAPER = {
    "femnist-device": "Figure 4 (a) of the paper compares methods in this setting.",
    "cifar10-silo": "Figures 4 (b) and 5 of the paper compare methods in this setting.",
    "cifar10-device": "Figure 4 (c) of the paper compares methods in this setting.",
}

Method = Mapping[str, Any]
"""What the file holds of one method: its settings, the search for its rate, and its rounds."""


def page(data: Mapping[str, Any]) -> Page:
    methods, config = data["methods"], read(data["preset"])
    explain = "The model that would be deployed: quantised for FedVote, float for the others. One seed each."
    explain += f" {PAPER.get(data['preset'], '')}"
    note = data.get("note", "")
    by_round, by_uplink = charts(methods, turns(config))
    sections = [
        section(by_round.title, by_round.figure(), explain=explain),
        section(by_uplink.title, by_uplink.figure(), explain="What every megabyte from a client has bought so far."),
        section("In numbers", numbers(methods, config), explain=f"Megabytes are of one client in all rounds. {note}"),
        section("Search for the rate", searched(methods), explain=f"Accuracy of short runs; {taken(methods)}."),
    ]
    facts = facts_of(config, data["environment"], [one["rounds"][-1]["round"] for one in methods.values()])
    return Page(f"Methods compared: {data['preset']}", facts, sections, [by_round, by_uplink])


def charts(methods: Mapping[str, Method], clients: int) -> tuple[Chart, Chart]:
    rounds = {name: [each["round"] for each in one["rounds"]] for name, one in methods.items()}
    sent = {name: megabytes(one, "uplink_bytes", clients) for name, one in methods.items()}

    def lines(places: Mapping[str, Sequence[float]]) -> tuple[Series, ...]:
        def one_line(name: str) -> Series:
            notes = [f"round {r} \N{MIDDLE DOT} {decimal(x)} MB" for r, x in zip(rounds[name], sent[name], strict=True)]
            return line(name, list(methods), places[name], accuracies(methods[name]), notes.__getitem__)

        return tuple(map(one_line, methods))

    every, y = [x for xs in sent.values() for x in xs], accuracy_axis(lines(rounds))
    until, ends = max(map(max, rounds.values())), (min(every) / 1.1, max(every) * 1.1)
    megabyte = "megabytes sent by one client so far, logarithmic"
    return (
        Chart("accuracy-by-round", "Accuracy by round", lines(rounds), axis_from_zero(until, whole=True), "round", y),
        Chart("accuracy-by-uplink", "Accuracy by uplink", lines(sent), log_axis(*ends), megabyte, y),
    )


def accuracies(one: Method) -> list[float | None]:
    return [each.get("accuracy") for each in one["rounds"]]


def turns(config: Config) -> int:
    """Clients of one round."""
    return config.federation.cohort or config.federation.clients


def megabytes(one: Method, key: str, clients: int) -> list[float]:
    """What one client has sent, or received, by the end of each round."""
    return list(accumulate(each[key] / clients / 1e6 for each in one["rounds"]))


def rate(one: Method) -> str:
    """The one that the search took, as the settings have it."""
    return str(dict(each.split("=", 1) for each in one["settings"])[one["search"]["key"]])


def numbers(methods: Mapping[str, Method], config: Config) -> Html:
    D = Network(MODELS[config.model.name](*SHAPES[config.data.name]), keep_float=config.model.keep_float).D

    def row(name: str, one: Method) -> list[str]:
        up, down = (megabytes(one, f"{way}link_bytes", turns(config))[-1] for way in ("up", "down"))
        bits = 8e6 * up / len(one["rounds"]) / D
        until = str(one["rounds"][-1]["round"])
        shown = [rate(one), until, percent(last(accuracies(one))), decimal(up), decimal(down), decimal(bits)]
        return [swatch(name, list(methods)), *shown]

    head = ["Method", "Rate", "Rounds", "Accuracy", "MB up", "MB down", "Bits a weight up"]
    return table(head, [row(name, one) for name, one in methods.items()], "numbers")


def taken(methods: Mapping[str, Method]) -> str:
    """How the rates that are shown were chosen."""
    twice = [f"{name} ({', '.join(f'{r}: {percent(a)}' for r, a in one['long'].items())})"
             for name, one in methods.items() if len(one.get("long", ())) > 1]  # fmt: skip
    return "the rate taken is bold" + (f"; after runs of full length at two rates, of {', '.join(twice)}" * bool(twice))


def searched(methods: Mapping[str, Method]) -> Html:
    rates = sorted({each for one in methods.values() for each in one["search"]["accuracy"]}, key=float)

    def cell(one: Method, each: str) -> str:
        found = one["search"]["accuracy"]
        shown = percent(found[each]) if each in found else ""
        return tag("strong", shown) if each == rate(one) else shown

    def row(name: str, one: Method) -> list[str]:
        search = one["search"]
        return [swatch(name, list(methods)), search["key"], str(search["rounds"]), *(cell(one, each) for each in rates)]

    return table(["Method", "Setting", "Rounds", *rates], [row(name, one) for name, one in methods.items()], "numbers")
