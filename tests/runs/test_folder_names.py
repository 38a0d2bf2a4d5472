"""The name of a run's folder says what was set, has an end, and differs where settings do."""

from __future__ import annotations

from fedvote.runs.sweep import LONGEST, folder_name, points


def test_a_name_is_its_settings_as_they_are() -> None:
    assert folder_name(["method.lr=1e-4", "data.name=digits"]) == "method.lr=1e-4_data.name=digits"


def test_a_name_is_kept_up_to_the_longest_and_cut_with_a_checksum_beyond() -> None:
    longest, longer, other = "a" * LONGEST, "a" * LONGEST + "b", "a" * LONGEST + "c"
    assert folder_name([longest]) == longest
    cut = folder_name([longer])
    assert cut.startswith(f"{longest}_") and len(cut) == LONGEST + 9
    assert folder_name([other]) != cut


def test_what_a_folder_cannot_be_called_is_replaced_and_still_told_apart() -> None:
    names = [folder_name([f"data.name={path}"]) for path in ("a/b.py:c", "a\\b.py:c", "a b.py:c")]
    assert len(set(names)) == 3
    assert all(not set(name) & set("/\\: ") and name.startswith("data.name=a-b.py-c_") for name in names)


def test_axes_are_combined_with_the_last_one_fastest() -> None:
    assert points(["a=1,2", "b=3,4"]) == [("a=1", "b=3"), ("a=1", "b=4"), ("a=2", "b=3"), ("a=2", "b=4")]
