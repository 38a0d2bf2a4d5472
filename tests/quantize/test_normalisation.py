"""Normalisation: from any real number to a number between -1 and 1, and back."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from fedvote.quantize import (
    NORMALISATIONS,
    Erf,
    Normalisation,
    Tanh,
    clip,
)

STEEPNESS = (0.5, 1.0, 1.5, 2.5, 10.0)


@dataclass(frozen=True)
class Softsign(Normalisation):
    """What a user would write: phi(h) = a h / (1 + |a h|)."""

    def __call__(self, h: Tensor) -> Tensor:
        return self.a * h / (1 + (self.a * h).abs())

    def inverse(self, w: Tensor) -> Tensor:
        return w / (1 - w.abs()) / self.a


EVERY_PHI: list[Normalisation] = [kind(a) for kind in (Tanh, Erf, Softsign) for a in STEEPNESS]


def test_the_registered_normalisations_are_those_of_the_paper() -> None:
    h = torch.tensor([-0.4, 0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(
        NORMALISATIONS["tanh"](1.5)(h),
        torch.tensor([-0.5370495669980353, 0.0, 0.9051482536448664], dtype=torch.float64),
    )
    torch.testing.assert_close(
        NORMALISATIONS["erf"](1.0)(h),
        torch.tensor([-0.42839235504666845, 0.0, 0.8427007929497149], dtype=torch.float64),
    )


def test_the_default_steepness_is_the_papers() -> None:
    assert Tanh().a == Erf().a == 1.5


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_p_survives_the_inverse_and_back(phi: Normalisation) -> None:
    p = torch.linspace(0.001, 0.999, 999)
    h = phi.inverse(2 * p - 1)
    assert h.isfinite().all()
    torch.testing.assert_close((phi(h) + 1) / 2, p, atol=2e-7, rtol=2e-6)


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_normalisation_is_strictly_increasing_onto_the_open_interval(phi: Normalisation) -> None:
    reach = float(phi.inverse(torch.tensor(0.998)))
    w = phi(torch.linspace(-reach, reach, 1001, dtype=torch.float64))
    assert (w.diff() > 0).all()
    assert (w.abs() < 1).all()
    torch.testing.assert_close(w, -w.flip(0))  # odd, so zero stays zero and neither vote is favoured


@pytest.mark.parametrize("phi", EVERY_PHI, ids=repr)
def test_normalisation_is_differentiable(phi: Normalisation) -> None:
    reach = float(phi.inverse(torch.tensor(0.9)))
    h = torch.linspace(-reach, reach, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(phi, (h,))


def test_a_normalisation_saturates_to_votes_not_to_nan() -> None:
    for phi in (Tanh(), Erf()):
        assert phi(torch.tensor([-1e30, 1e30])).tolist() == [-1.0, 1.0]


def test_clip_keeps_p_between_its_bounds() -> None:
    soft = 2 * torch.tensor([0.0, 0.001, 0.01, 0.5, 0.995, 1.0]) - 1
    p = (clip(soft, 0.01) + 1) / 2
    torch.testing.assert_close(p, torch.tensor([0.01, 0.01, 0.01, 0.5, 0.99, 0.99]))
