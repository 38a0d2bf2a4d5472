"""The types of the values in a record of metrics.jsonl. Programs compute with them, and anybody may edit the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_number_or_none(value: Any) -> bool:
    """A number that was not finite is None."""
    return value is None or is_number(value)


def is_client(value: Any) -> bool:
    return type(value) is int and value >= 0


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def by_client(check: Check) -> Check:
    """An object: client, as text, -> a value."""
    return lambda value: isinstance(value, dict) and all(k.isdecimal() and check(v) for k, v in value.items())


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_metric(value: Any) -> bool:
    kinds = {"name": is_text, "higher_is_better": is_flag, "percent": is_flag}
    return isinstance(value, dict) and all(name in value and check(value[name]) for name, check in kinds.items())


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


MODELS = ("", "_calibrated", "_float", "_float_calibrated")
CHECKS: dict[str, Check] = {
    "round": is_client,
    **dict.fromkeys(
        [f"accuracy{model}" for model in MODELS] + ["loss", "loss_float", "backdoor_success", "backdoor_success_float"],
        is_number_or_none,
    ),
    **dict.fromkeys(("uplink_bytes", "downlink_bytes", "total_bytes", "seconds", "seconds_training"), is_number),
    **dict.fromkeys(("uplink_message_bytes", "downlink_message_bytes", "evaluation_bytes"), is_number),
    **dict.fromkeys(("uplink_bits_per_weight", "downlink_bits_per_weight", "total_bits_per_weight"), is_number_or_none),
    **dict.fromkeys(("clients", "counted", "absent", "returned"), list_of(is_client)),
    **dict.fromkeys(("refused", "failed", "late", "left_out"), by_client(is_text)),
    "accuracy_quartiles": list_of(is_number_or_none),
    "turned_away": list_of(is_text),
    "second": by_client(is_number),
    "vote_weight": by_client(is_number_or_none),
    "measured": lambda value: isinstance(value, dict) and all(map(is_number_or_none, value.values())),
    "metric": is_metric,
}
"""Field -> whether a value is one that fedvote writes. Other fields are not looked at."""


def check_record(record: Mapping[str, Any]) -> None:
    """TypeError if a value has another type than it is written with."""
    if type(record["round"]) is not int:
        raise TypeError("its round is not a whole number")
    metric = record.get("metric")
    own = {f"{metric['name']}{model}": is_number_or_none for model in MODELS} if is_metric(metric) and metric else {}
    for name, value in record.items():
        check = CHECKS.get(name) or own.get(name)
        if check is not None and not check(value):
            raise TypeError(f"its {name} is {str(value)[:80]!r}")
