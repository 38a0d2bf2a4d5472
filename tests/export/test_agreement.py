"""An export may differ from its network by what rounding explains, and by no more."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fedvote.errors import ModelError
from fedvote.export.exported import agreement
from fedvote.network.deployed import Deployed


class Chaos(nn.Module):
    """x <- 4 x (1 - x), again and again: every step doubles an error of rounding."""

    def __init__(self, steps: int, multiplied_out: bool = False, in_float32: bool = False) -> None:
        super().__init__()
        self.steps, self.multiplied_out, self.in_float32 = steps, multiplied_out, in_float32
        self.last = nn.Linear(4, 4, bias=False)
        nn.init.eye_(self.last.weight)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.steps):
            x = 4 * x - 4 * x * x if self.multiplied_out else 4 * x * (1 - x)
        return self.last(x.float() if self.in_float32 else x)  # type: ignore[no-any-return]


X = torch.rand(20, 4, generator=torch.Generator().manual_seed(0))


def network(steps: int, in_float32: bool = False) -> Deployed:
    return Deployed(Chaos(steps, in_float32=in_float32), (), (), "abcd", (4,), torch.float32).eval()


def translated(steps: int) -> Tensor:
    """The outputs of a right translation, which computes in another order."""
    return Chaos(steps, multiplied_out=True)(X).detach()  # type: ignore[no-any-return]


def test_a_right_translation_of_a_network_that_amplifies_rounding_is_accepted() -> None:
    found = translated(13)
    assert (found - network(13)(X)).abs().max() > 1e-3, "more than other networks may differ"
    assert agreement(found.numpy(), network(13), X) > 0.9


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [
        (1, 0.002, r"by 0\.2% .*, expected at most 0\.1%: a layer was translated wrongly"),
        (13, 0.2, r"by 20\..% .*, expected at most \d\.\d%: rounding to float32 alone changes .* by 0\.\d%"),
        (30, 0.0, r"expected at most 5\.0%: rounding to float32 alone changes the network's outputs by \d\d"),
    ],
)
def test_what_rounding_does_not_explain_or_explains_too_well_is_refused_with_its_cause(
    steps: int, error: float, words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        agreement((translated(steps) + error).numpy(), network(steps), X)


def test_a_network_that_cannot_compute_in_float64_is_held_to_the_usual_difference() -> None:
    with pytest.raises(ModelError, match=r"expected at most 0\.1%"):
        agreement(translated(13).numpy(), network(13, in_float32=True), X)
