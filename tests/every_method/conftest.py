"""Every method with its defaults, and the variants below: a new method is tested by being in METHODS."""

from __future__ import annotations

import pytest

from fedvote import FedAvg, FedVote
from fedvote.aggregate import GeometricMedian, Median
from fedvote.method import Method
from fedvote.methods import METHODS, Eden, FedPAQ, FetchSGD, SignSGD, Signum
from fedvote.quantize import Erf
from fedvote.reputation import Proportional
from tests.toy import Federation

VARIANTS: dict[str, Method] = {
    "fedvote ternary": FedVote(votes="ternary"),
    "fedvote proportional": FedVote(reputation=Proportional(beta=0.25)),
    "fedvote ternary proportional": FedVote(votes="ternary", reputation=Proportional(), grid=101),
    "fedvote train_float": FedVote(train_float=True, normalisation=Erf(2.0)),
    "fedvote train_float proportional": FedVote(train_float=True, reputation=Proportional()),
    "fedvote float levels": FedVote(train_float=True, float_levels=15),
    "fedvote float levels plain proportional": FedVote(
        train_float=True, float_levels=1, coding="plain", reputation=Proportional()
    ),
    "fedvote sign deploy": FedVote(sign_share=0.5, deploy_rounds=3, train_float=True),
    "fedvote changes": FedVote(counts="changes"),
    "fedvote ternary changes proportional": FedVote(votes="ternary", counts="changes", reputation=Proportional()),
    "fedvote changes carried": FedVote(counts="changes", levels=5, level_rounding="carry"),
    "fedvote SGD": FedVote(lr=0.5, optimizer="SGD", optimizer_options={"momentum": 0.9, "nesterov": True}),
    "fedavg by_samples": FedAvg(by_samples=True),
    "fedavg median": FedAvg(aggregate=Median()),
    "fedavg by_samples geometric-median": FedAvg(by_samples=True, aggregate=GeometricMedian()),
    "fedavg AdamW": FedAvg(lr=0.01, optimizer="AdamW", optimizer_options={"weight_decay": 0.1, "betas": [0.5, 0.9]}),
    "fedpaq levels plain": FedPAQ(levels=7, coding="plain"),
    "signsgd SGD": SignSGD(lr=0.1, optimizer="SGD", server_lr=0.01),
    "signum beta": Signum(beta=0.5, server_lr=0.01),
    "fetchsgd small subtract": FetchSGD(rows=3, columns=20, k=10, momentum=0.5, feedback="subtract"),
    "fetchsgd one row": FetchSGD(rows=1, columns=10**9, k=10**9, momentum=0.0),
    "eden blocks": Eden(lr=0.01, block=16),
}
EVERY = {name: kind() for name, kind in METHODS.items()} | VARIANTS


@pytest.fixture(params=list(EVERY.values()), ids=list(EVERY), scope="module")
def method(request: pytest.FixtureRequest) -> Method:
    made: Method = request.param
    return made


@pytest.fixture(scope="module")
def federation(method: Method) -> Federation:
    return Federation(method)
