"""Networks of twenty kinds train with each method, or are refused with a sentence whose fix works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.network.twenty_networks import ABOVE, CASES, METHODS, outcome, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "networks.md"


@pytest.mark.filterwarnings("ignore:.* voted on, but without a gradient")  # of an output that the fix leaves unused
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", CASES)
def test_a_network_trains_or_its_refusal_names_a_fix_that_works(name: str, method: str) -> None:
    accuracy, sentence = outcome(name, method)
    assert accuracy > ABOVE[method]
    refused = CASES[name].refused if method in CASES[name].by else ""
    assert (refused in sentence) if refused else not sentence


def test_the_page_has_the_table_of_these_tests() -> None:
    """python -m tests.network.twenty_networks prints it."""
    assert len(CASES) == 20 and table() in PAGE.read_text(encoding="utf-8")
