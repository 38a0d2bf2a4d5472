"""The summary names every layer, what happens to it, and what is frozen and large."""

from __future__ import annotations

import json
from typing import Any

import pytest
from torch import nn

from fedvote import FedAvg, FedPAQ, FedVote, simulate
from fedvote.methods import Eden, SignSGD
from fedvote.network.summary import FROZEN, TRAINED, VOTED, Summary
from fedvote.report.html_tables import network_table
from fedvote.report.read_run import Run, read_network
from tests.toy import dataset, module


def summary(method: Any, network: nn.Module | None = None, **options: Any) -> Summary:
    made = simulate(network or module(), dataset(), method, clients=5, rounds=1, batch=8, **options)
    return made.federation.summary()


@pytest.mark.parametrize(
    ("method", "roles", "up", "device"),
    [
        (FedVote(), [VOTED, FROZEN, FROZEN], [1, 0, 0], [1, 32, 32]),
        (FedVote(votes="ternary", train_float=True), [VOTED, TRAINED, TRAINED], [1.585, 32, 32], [1.6, 32, 32]),
        (FedVote(coding="plain"), [VOTED, FROZEN, FROZEN], [1, 0, 0], [1, 32, 32]),
        (FedAvg(), [TRAINED] * 3, [32, 32, 32], [32, 32, 32]),
        (FedPAQ(levels=3), [TRAINED] * 3, [2.807 + 32 / 111] * 3, [32, 32, 32]),
    ],
    ids=repr,
)
def test_every_layer_has_its_role_and_its_bits(
    method: Any, roles: list[str], up: list[float], device: list[float]
) -> None:
    layers = summary(method).layers
    assert [(layer.name, layer.shape) for layer in layers] == [
        ("0.weight", (12, 6)), ("3.weight", (3, 12)), ("3.bias", (3,)),
    ]  # fmt: skip
    assert [layer.role for layer in layers] == roles
    assert [layer.bits_up for layer in layers] == pytest.approx(up, abs=0.001)
    assert [layer.bits_device for layer in layers] == device


def test_totals_add_up_and_are_printed() -> None:
    made = summary(FedVote(train_float=True))
    assert made.weights() == 72 + 36 + 3 and made.weights(VOTED) == 72
    assert made.uplink_bytes == pytest.approx((72 + 39 * 32) / 8 + 39 + 2 * 9 + 4)  # with the frame
    for part in ("0.weight", "12 x 6", "trained float", "111 weights: 72 voted, 39 trained float", "given weights"):
        assert part in str(made)


@pytest.mark.parametrize(
    "method",
    [FedVote(coding="plain"), FedVote(coding="plain", train_float=True), FedAvg(), FedPAQ(coding="plain"), SignSGD()],
    ids=repr,
)
def test_a_message_takes_the_bytes_that_the_summary_says(method: Any) -> None:
    run = simulate(module(), dataset(), method, clients=5, rounds=1, steps=1, batch=8, device="cpu", wire="written")
    (last,) = run
    sent = last.record["uplink_bytes"] / 5
    assert 0 <= sent - run.federation.summary().uplink_bytes < 2  # whole bytes of each tensor


@pytest.mark.parametrize(("method", "scaled"), [(FedVote(), True), (FedAvg(), False)], ids=repr)
def test_given_weights_that_are_voted_on_lose_their_scale_and_the_summary_says_so(method: Any, scaled: bool) -> None:
    assert ("lose their scale" in summary(method).start) == scaled


def warnings(**options: Any) -> str:
    return " ".join(summary(options.pop("method", FedVote()), **options).warnings)


def test_large_frozen_weights_are_warned_of_with_the_key_that_changes_them() -> None:
    said = warnings()
    assert "3.weight (32% of all weights): float, and by default not trained. To train: method.train_float=true" in said
    assert "To train: method.train_float=true, in a program FedVote(train_float=True); to vote: model.vote" in said
    assert not warnings(method=FedVote(train_float=True)) and not warnings(method=FedAvg())
    assert not warnings(keep_float=[])


def probe() -> nn.Module:
    network = module()
    network[0].requires_grad_(False)  # type: ignore[index]
    return network


@pytest.mark.parametrize("method", [FedAvg(), SignSGD(), Eden()], ids=repr)
def test_a_frozen_body_is_frozen_with_every_method(method: Any) -> None:
    made = summary(method, probe())
    roles = {layer.name: layer.role for layer in made.layers}
    assert roles == {"0.weight": FROZEN, "3.weight": TRAINED, "3.bias": TRAINED}
    assert "39 trained float, 72 frozen float" in made.total
    assert {layer.name: layer.bits_up for layer in made.layers}["0.weight"] == 0


@pytest.mark.parametrize("start", ["given", "seed"])
def test_what_the_user_froze_is_frozen_under_fedvote(start: str) -> None:
    for method in (FedVote(), FedVote(train_float=True)):
        made = summary(method, probe(), keep_float=[], start=start)
        roles = {layer.name: layer.role for layer in made.layers}
        assert roles["0.weight"] == FROZEN and roles["3.weight"] == VOTED


def test_frozen_weights_that_the_seed_draws_are_warned_of() -> None:
    assert "0.weight: frozen (requires_grad=False), and drawn from the seed" in warnings(
        network=probe(), start="seed", keep_float=[]
    )
    assert "drawn from the seed" not in warnings(network=probe(), keep_float=[]) + warnings(start="seed")


class Aside(nn.Module):
    """A layer that forward never uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.aside, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).relu())


@pytest.mark.filterwarnings("ignore:aside.weight. voted on, but without a gradient")
def test_weights_that_forward_never_uses_are_warned_of_if_they_are_sent() -> None:
    assert "aside.weight got no gradient in a trial run" in warnings(network=Aside())
    assert "aside.weight, aside.bias got no" in warnings(network=Aside(), method=FedAvg())
    assert "no gradient" not in warnings() + warnings(network=Aside(), keep_float=["aside", "head"])


def test_norms_that_are_left_out_and_networks_that_are_slow_are_warned_of() -> None:
    norm = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    assert 'start="given", keeps' in warnings(network=norm, start="seed") and "given" not in warnings(network=norm)

    class Flow(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else x + 0

    assert "one at a time" in warnings(network=nn.Sequential(nn.Linear(6, 8), Flow(), nn.Linear(8, 3)))


def test_a_long_network_is_shown_in_a_few_rows() -> None:
    deep = nn.Sequential(*(nn.Linear(6, 6) for _ in range(20)), nn.Linear(6, 3))
    text = str(summary(FedVote(), network=deep))
    assert "29 more" in text and len(text.splitlines()) < 25


def test_the_report_page_reads_what_the_run_folder_keeps() -> None:
    made = summary(FedVote())
    assert read_network({}) is None  # as in folders of earlier versions
    found = read_network(json.loads(json.dumps({"network": made.as_json()})))
    assert found is not None and found.total == made.total and found.warnings == made.warnings
    assert found.layers[0] == ("0.weight", "12 x 6", "72", "voted", "1", "1")
    page = str(network_table(Run("a run", {}, (), None, found)))
    assert "frozen float" in page and "method.train_float=true" in page
