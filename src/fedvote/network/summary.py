"""What happens to each layer: voted on, trained as floats or frozen, and its bits on the wire and on the device."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from fedvote.codecs.frame import frame_bytes
from fedvote.core import Codec
from fedvote.errors import some
from fedvote.method import Method
from fedvote.network.network import Network

if TYPE_CHECKING:
    from rich.table import Table

VOTED, TRAINED, FROZEN, MOVED = "voted", "trained float", "frozen float", "moved float"
LARGE = 0.05  # share of all weights from which frozen ones get a warning
SHOWN = 14  # rows of the printed table; further layers are added up


@dataclass(frozen=True)
class Layer:
    name: str
    shape: tuple[int, ...]
    weights: int
    role: str  # voted, trained float, frozen float, or moved: the user froze it, but the method moves every weight
    bits_up: float  # that a client sends of each weight in a round, before entropy coding
    bits_device: float  # of each weight on the device


@dataclass(frozen=True)
class Summary:
    layers: tuple[Layer, ...]
    start: str  # where the initial weights come from, and the batch norms that keep their running statistics
    warnings: tuple[str, ...]
    frame_bytes: int = 0  # of a client's message beside its weights

    def weights(self, role: str | None = None) -> int:
        return sum(layer.weights for layer in self.layers if role in (None, layer.role))

    @property
    def uplink_bytes(self) -> float:
        """Bytes of one client's message in one round, before entropy coding."""
        return self.frame_bytes + sum(layer.weights * layer.bits_up for layer in self.layers) / 8

    @property
    def device_bytes(self) -> float:
        return sum(layer.weights * layer.bits_device for layer in self.layers) / 8

    @property
    def total(self) -> str:
        roles = [f"{self.weights(role):,} {role}" for role in (VOTED, TRAINED, FROZEN, MOVED) if self.weights(role)]
        return (
            f"{self.weights():,} weights: {', '.join(roles)}. {_size(self.uplink_bytes)} up a client and round before "
            f"entropy coding, {_size(self.device_bytes)} on the device. {self.start}"
        )

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "total": self.total}

    def table(self) -> Table:
        """A table for a terminal, with at most SHOWN rows."""
        from rich.table import Table

        table = Table("layer", "shape", box=None, pad_edge=False)
        for name in ("weights", "", "bits up", "on device"):
            table.add_column(name, justify="right" if name else "left")
        hidden = self.layers[SHOWN - 1 :] if len(self.layers) > SHOWN else ()
        for layer in self.layers[: len(self.layers) - len(hidden)]:
            sides = " x ".join(map(str, layer.shape))
            bits = (f"{bits:.3g}" for bits in (layer.bits_up, layer.bits_device))
            table.add_row(layer.name, sides, f"{layer.weights:,}", layer.role, *bits)
        if hidden:
            table.add_row(f"{len(hidden)} more", "", f"{sum(layer.weights for layer in hidden):,}")
        return table

    def __str__(self) -> str:
        from rich.console import Console

        text = StringIO()
        console = Console(file=text, width=100)
        console.print(self.table())
        console.print(self.total, *(f"Warning: {warning}." for warning in self.warnings), sep="\n", highlight=False)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def summarise(network: Network, seed: int, uplink: Mapping[str, Codec], device_bits: float, method: Method) -> Summary:
    """`uplink`: the codecs of a client's message; `device_bits`: of a voted weight in the deployed network."""
    float_only = method.float_only
    up = {name: codec.plain_bits for name, codec in uplink.items()}
    everywhere = sum(
        bits * uplink[name].count / (network.trainable if method.keeps_frozen else network.D + network.F)
        for name, bits in up.items()
        if name not in ("votes", "voted", "float")
    )
    voted = VOTED if not float_only else TRAINED
    floats = TRAINED if float_only or method.trains_float else FROZEN
    bits_voted = up.get("votes", up.get("voted", 0.0)) + everywhere
    bits_float = up.get("float", 0.0) + (everywhere if float_only else 0.0)
    keeps = method.keeps_frozen or floats == FROZEN
    layers = [
        *(Layer(s.name, s.shape, s.size, voted, bits_voted, device_bits) for s in network.voted),
        *(
            Layer(s.name, s.shape, s.size, FROZEN if keeps else MOVED, 0.0 if keeps else bits_float, 32.0)
            if s.name in network.frozen
            else Layer(s.name, s.shape, s.size, floats, bits_float, 32.0)
            for s in network.floats
        ),
    ]
    warnings = tuple(_warnings(network, layers))
    start = _start(network, seed, float_only) + _kept(network)
    return Summary(tuple(layers), start, warnings, frame_bytes(len(uplink)))


def _start(network: Network, seed: int, exactly: bool) -> str:
    if network.brings_weights and not exactly:
        return (
            "Training starts from the given weights. Those that are voted on lose their scale: each layer is divided "
            "by its standard deviation and clipped to ±1."
        )
    if network.brings_weights:
        return "Training starts from the given weights."
    given = f", except {some(network.given)}, as the network has it" if network.given else ""
    return f"Seed {seed} draws the initial weights{given}."


def _kept(network: Network) -> str:
    return f" Batch norm keeps its running statistics in {some(sorted(network.kept_norms))}." * bool(network.kept_norms)


def _warnings(network: Network, layers: Sequence[Layer]) -> list[str]:
    found = []
    frozen = [
        layer for layer in layers if layer.role == FROZEN and len(layer.shape) > 1 and layer.name not in network.frozen
    ]
    share = sum(layer.weights for layer in frozen) / (network.D + network.F)
    if share >= LARGE:
        names = some([layer.name for layer in frozen])
        found.append(
            f"{names} ({share:.0%} of all weights): float, and by default not trained. To train: "
            "method.train_float=true, in a program FedVote(train_float=True); to vote: model.vote, in a program "
            "vote=[...]"
        )
    if moved := [layer.name for layer in layers if layer.role == MOVED]:
        found.append(f"{some(moved)}: requires_grad is False, but the method moves every weight")
    without_gradient = network.trial.unused - network.frozen
    if unused := [layer.name for layer in layers if layer.name in without_gradient and layer.bits_up]:
        found.append(
            f"{some(unused)} got no gradient in a trial run, so what clients send of them says nothing: use them in "
            "forward, remove them, or freeze them (requires_grad_(False))"
        )
    if network.frozen and not network.brings_weights:
        found.append(
            f"{some(sorted(network.frozen))}: frozen (requires_grad=False), and drawn from the seed, not as given: "
            'model.start=given, in a program start="given", keeps them'
        )
    if network.unkept_norms:
        found.append(
            f"{some(network.unkept_norms)}: frozen, but in training mode, so batch norm normalises by the batch there: "
            "call .eval() on the frozen layers to keep their running statistics"
        )
    if network.drops_norms:
        found.append(
            "batch norm trains without its scale and shift, as in the paper: model.start=given, in a program "
            'start="given", keeps them'
        )
    if not network.trial.stackable:
        found.append(
            "clients train one at a time, since this network or its loss cannot run as a stack of clients: rounds are "
            "slow"
        )
    return found


def _size(nbytes: float) -> str:
    return f"{nbytes / 1e6:.3g} MB" if nbytes >= 1e6 else f"{nbytes / 1e3:.3g} kB"
