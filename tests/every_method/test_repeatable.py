"""No run does what a GPU cannot do twice alike: torch would stop it there, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fedvote import FedAvg, FedVote
from fedvote.aggregate import AGGREGATES
from fedvote.attacks import ATTACKS, LateLabels
from fedvote.engines.simulate import simulate
from fedvote.method import Method
from fedvote.reputation import REPUTATIONS, OracleCut
from tests import toy

REFUSED = ("median.dim", "nanmedian.dim", "mode", "kthvalue", "histc", "put_", "put")
"""Of what `torch.use_deterministic_algorithms` names: operations that a method might use."""


class AsOnGpu(TorchDispatchMode):
    """Stops at what torch refuses on a GPU where runs have to be repeatable."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.name().removeprefix("aten::")
        sums = name == "cumsum" and (kwargs or {}).get("dtype", args[0].dtype).is_floating_point
        weighted = name == "bincount" and (len(args) > 1 and args[1] is not None)
        if sums or weighted or name in REFUSED:
            raise RuntimeError(f"{name} is not repeatable on a GPU")
        return func(*args, **(kwargs or {}))


def run(method: Method, **settings: Any) -> None:
    made = simulate(toy.module(), toy.dataset(), method, clients=5, rounds=2, steps=2, batch=8, **settings)
    with AsOnGpu():
        for _ in made.run():
            pass


def test_methods(method: Method) -> None:
    run(method)


@pytest.mark.parametrize("rule", AGGREGATES.values())
def test_rules_of_aggregation(rule: Callable[[], Any]) -> None:
    run(FedAvg(aggregate=rule()))


@pytest.mark.parametrize("rule", REPUTATIONS.values())
def test_rules_of_reputation(rule: Callable[..., Any]) -> None:
    told = {"attackers": 2} if rule is OracleCut else {}
    run(FedVote(reputation=rule(**told)), hostile=2, attack=ATTACKS["inverse"]())


@pytest.mark.parametrize("method", [FedVote(), FedAvg()], ids=["votes", "floats"])
@pytest.mark.parametrize("attack", [*ATTACKS.values(), lambda: LateLabels(starts=1)])
def test_attacks(attack: Callable[[], Any], method: Method) -> None:
    run(method, attack=attack(), hostile=2)


def test_the_check_sees_what_torch_refuses() -> None:
    x = torch.rand(3, 4)
    for refused in (lambda: x.median(0), lambda: x.cumsum(0), lambda: x.kthvalue(1)):
        with AsOnGpu(), pytest.raises(RuntimeError, match="not repeatable"):
            refused()
    with AsOnGpu():
        assert x.median() in x and len(x.long().cumsum(0)) == 3
