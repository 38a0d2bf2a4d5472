"""The few numbers that answer for a run, or for runs that differ only in their seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from fedvote.report.left_out import left_out, out_in_words
from fedvote.report.number_text import NONE, decimal, duration, last, mean, percent, size, spread, writer
from fedvote.report.over_seeds import Group
from fedvote.report.read_run import Run, both_ways, number

FLOAT32_BITS = 32
FLOAT = "Float network"


@dataclass(frozen=True)
class Headline:
    label: str
    number: float | None
    show: Callable[[float | None], str]
    note: str = ""  # one line or several
    share: float | None = None  # the filled part of the bar below the number, between 0 and 1
    words: str = ""  # instead of the number

    @property
    def value(self) -> str:
        return self.words or self.show(self.number)


def headlines(run: Run) -> list[Headline]:
    """The answer first: how good, how many bytes, who was left out."""
    return [quality(run), traffic(run), clients_left_out(run), on_device(run), bits(run), time_taken(run)]


def columns(group: Group, table: Sequence[Group] = ()) -> list[Headline]:
    """The numbers of one run for a table of several; of runs that differ only in their seed, their means.

    `table`: all groups of the table, which share one size of float32.
    """
    runs = [run for each in table for run in each.runs]
    by_run = [
        [
            quality(run), float_quality(run), traffic(run), smaller(run, runs), clients_left_out(run), on_device(run),
            bits_one_way(run, "up"), bits_one_way(run, "down"), time_taken(run),
        ]
        for run in group.runs
    ]  # fmt: skip
    means = [over_seeds(items) for items in zip(*by_run, strict=True)]
    deployed, floating = (with_spread(item, group) for item in means[:2])
    return [with_backdoor(deployed, group), floating, *means[2:]]


def over_seeds(items: Sequence[Headline]) -> Headline:
    known = [item.number for item in items if item.number is not None]
    return Headline(items[0].label, mean(known), items[0].show)


def with_spread(item: Headline, group: Group) -> Headline:
    """A metric with its standard deviation over seeds."""
    suffix = "_float" if item.label == FLOAT else ""
    ends = [value for run in group.runs if (value := run.final(suffix)) is not None]
    of = f" in {len(ends)} of {len(group.runs)} runs" if len(ends) < len(group.runs) else ""
    return replace(item, words=spread(ends, group.shown.percent) + of) if ends and group.runs[1:] else item


def with_backdoor(item: Headline, group: Group) -> Headline:
    """A metric, and beside it the success of a backdoor, if the runs have one."""
    ends = [column[-1] for run in group.runs if (column := run.column("backdoor_success"))]
    return replace(item, words=f"{item.value}, backdoor {percent(mean(ends))}") if ends else item


def quality(run: Run) -> Headline:
    """The metric of the deployed network, and beside it of the float network that training continues from."""
    deployed, calibrated, floating = (run.final(suffix) for suffix in ("", "_calibrated", "_float"))
    show, before, backdoor = writer(run.shown), last(run.quality()), run.column("backdoor_success")
    lost = deployed is None and before is not None
    notes = [
        f"not a finite number at the end; the last one before: {show(before)}" if lost else "",
        f"one input at a time: {show(calibrated)}" if calibrated is not None else "",
        f"float network: {show(floating)}" if floating not in (None, deployed) else "",
        f"backdoor: {percent(backdoor[-1])}" if backdoor else "",
    ]
    label = f"{run.shown.title} of the deployed network"
    return Headline(label, deployed, show, "\n".join(filter(None, notes)), deployed if run.shown.percent else None)


def float_quality(run: Run) -> Headline:
    return Headline(FLOAT, run.final("_float"), writer(run.shown))


def smaller(run: Run, beside: Sequence[Run] = ()) -> Headline:
    """How many times as many bytes float32 takes, for the weights that this run or one beside it sends."""
    sent, floats = sum(map(both_ways, run.rounds)), float32_bytes(run) * more_weights(run, beside)
    return Headline("Smaller than float32", floats / sent if sent and floats else None, times)


def times(value: float | None) -> str:
    return NONE if value is None else f"{decimal(value)}\N{MULTIPLICATION SIGN}"


def traffic(run: Run) -> Headline:
    up, down = (sum(run.column(f"{way}link_bytes")) for way in ("up", "down"))
    both, floats = up + down if counts_bytes(run) else None, float32_bytes(run)
    if both is None:
        return Headline("Traffic, up and down", None, size)
    lines = [beside_float32(both, floats), f"{size(up)} up, {size(down)} down, all clients together"]
    note = "\n".join(filter(None, lines))
    return Headline("Traffic, up and down", both, size, note, both / floats if floats else None)


def counts_bytes(run: Run) -> bool:
    return any(run.column(f"{way}link_bytes") for way in ("up", "down"))


def beside_float32(nbytes: float | None, floats: float | None) -> str:
    """How many times as much float32 takes, and how much that is; nothing if either is not known."""
    if not nbytes or not floats:
        return ""
    ratio = floats / nbytes
    return f"float32 takes {decimal(ratio)} times as much: {size(floats)}" if ratio > 1.1 else "as much as float32"


def float32_bytes(run: Run) -> float:
    """Bytes of the same messages if every weight in them were a float32. The seed makes the first broadcast."""
    seeded = run.setting("model", "start") in (None, "seed")
    return sum(
        (number(record, f"{way}link_bytes") or 0) * FLOAT32_BITS / width
        for record in run.rounds
        for way in ("up", "down")
        if (width := number(record, f"{way}link_bits_per_weight"))
        if not (seeded and way == "down" and record["round"] == 1)
    )


def more_weights(run: Run, beside: Sequence[Run]) -> float:
    """The weights that any of these runs sends of the run's network, divided by those that the run itself sends.

    FedVote leaves float weights frozen that float methods train: one comparison needs one float32 for both.
    """
    known = run.network
    if known is None or not known.sent:
        return 1.0
    same = [other.network.sent for other in beside if other.network and other.network.sizes == known.sizes]
    return weights_in(known.sent.union(*same)) / weights_in(known.sent)


def weights_in(layers: Iterable[tuple[str, int]]) -> int:
    return sum(weights for _, weights in layers)


def clients_left_out(run: Run) -> Headline:
    out = set[str]().union(*left_out(run).values())
    clients = run.setting("federation", "clients")
    of = f" of {clients}" if isinstance(clients, int) and clients else ""
    share = len(out) / clients if of and out else None

    def show(value: float | None) -> str:
        return NONE if value is None else f"{value:.3g}{of}" if value else "nobody"

    return Headline("Clients left out", len(out) if run.rounds else None, show, out_in_words(run), share)


def on_device(run: Run) -> Headline:
    known = run.network
    if known is None:
        return Headline("Size on a device", None, size)
    nbytes, floats = known.device_bytes, known.weights * FLOAT32_BITS / 8
    note = f"{known.weights:,} weights alone\nfloat32 takes {size(floats)}"
    return Headline("Size on a device", nbytes, size, note, nbytes / floats if floats else None)


def bits(run: Run) -> Headline:
    up, down = mean(run.column("uplink_bits_per_weight")), mean(run.column("downlink_bits_per_weight"))
    both = None if up is None or down is None else up + down
    note = f"{decimal(up)} up, {decimal(down)} down\n{size(traffic_per_client(run))} for each client and round"
    return Headline("Bits per weight", both, decimal, note)


def bits_one_way(run: Run, way: str) -> Headline:
    return Headline(f"Bits per weight {way}", mean(run.column(f"{way}link_bits_per_weight")), decimal)


def traffic_per_client(run: Run) -> float | None:
    """Mean bytes that one client sends and receives in a round, over the rounds that name their clients."""
    records = [record for record in run.rounds if record.get("clients")]
    turns = sum(len(record["clients"]) for record in records)
    return sum(map(both_ways, records)) / turns if turns else None


def time_taken(run: Run) -> Headline:
    seconds = run.column("seconds")
    each = mean(seconds)
    return Headline("Time", sum(seconds) if seconds else None, duration, f"{duration(each)} a round" if each else "")
