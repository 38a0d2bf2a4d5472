"""Numbers as people read them."""

from __future__ import annotations

import pytest

from fedvote.report.left_out import spans
from fedvote.report.number_text import brief, decimal, duration, size


def test_numbers_are_written_as_people_read_them() -> None:
    assert [decimal(value) for value in (None, 0, 0.00771, 1.0, 32.0, 1234.5)] == [
        "\N{EN DASH}", "0", "0.00771", "1.00", "32.0", "1,234",
    ]  # fmt: skip
    assert decimal(float("nan")) == "nan"
    assert size(2_500_000).replace("\u202f", " ") == "2.50 MB"
    assert size(678).replace("\u202f", " ") == "0.678 kB"
    assert [duration(value).replace("\u202f", " ") for value in (8.21, 119.6, 7500)] == [
        "8.21 s",
        "2 min 0 s",
        "2 h 5 min",
    ]
    assert spans([1, 2, 3, 5, 7, 8]) == "1\N{EN DASH}3, 5, 7\N{EN DASH}8"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.1 + 0.2, "0.3"), (2.5, "2.5"), (-40, "-40"), (1000, "1,000"), (123456.7, "123,457"),
     (2e7, "20,000,000"), (1e-5, "0.00001"), (1e15, "1e+15")],
)  # fmt: skip
def test_a_label_has_no_more_digits_than_it_needs(value: float, text: str) -> None:
    assert brief(value) == text
