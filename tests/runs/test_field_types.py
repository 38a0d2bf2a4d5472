"""Fields of any supported type are read strictly, and what is written reads back the same."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable
from types import GenericAlias
from typing import Any, Literal, Optional, Union, get_args, get_origin

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.runs.toml_tables import apply, as_table, build, inline_toml, to_plain, to_toml

NAMES = st.sampled_from(["a", "b", "width", "rate"])
SCALARS: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(),
}

thorough = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def holder(kind: Any, **options: Any) -> type:
    """A frozen dataclass with one field, `value`."""
    slot = ("value", kind, dataclasses.field(**options)) if options else ("value", kind)
    return dataclasses.make_dataclass("Holder", [slot], frozen=True)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Types that hold others."""
    tables = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    return st.one_of(
        inner.map(lambda kind: GenericAlias(list, (kind,))),
        inner.map(lambda kind: GenericAlias(tuple, (kind, ...))),
        st.tuples(inner, inner).map(lambda kinds: GenericAlias(tuple, kinds)),
        inner.map(lambda kind: GenericAlias(dict, (str, kind))),
        tables.map(lambda fields: dataclasses.make_dataclass("Own", list(fields.items()), frozen=True)),
    )


PLAIN = st.sampled_from([*SCALARS, Literal["fast", "slow"], Literal[1, "1", True], int | str])
KINDS = st.recursive(PLAIN, grown, max_leaves=4)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """What a field of a type may be."""
    origin, args = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return SCALARS[kind]
    if origin is Literal:
        return st.sampled_from(args)
    if origin is list:
        return st.lists(values(args[0]), max_size=3)
    if origin is tuple and args[1:] == (...,):
        return st.lists(values(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin is dict:
        return st.dictionaries(st.text(), values(args[1]), max_size=3)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return st.builds(kind, **{slot.name: values(slot.type) for slot in dataclasses.fields(kind)})
    return st.one_of([values(each) for each in args])


def kind_and_value(kind: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    return values(kind).map(lambda value: (kind, value))


def exactly(a: Any, b: Any) -> bool:
    """Equal, and of the same types: True is not 1, and 1 is not 1.0."""
    return bool(a == b) and repr(a) == repr(b)


def refused(cls: type, table: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as refusal:
        build(cls, table, "method 'mine'")
    assert len(str(refusal.value).splitlines()) == 1
    return str(refusal.value)


JUNK = st.recursive(
    st.one_of(*SCALARS.values()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(), inner, max_size=3),
)


# Both directions


@thorough
@given(KINDS.flatmap(kind_and_value))
@example((dict[str, float], {}))
@example((str, "\x7f\x00\r\n\"'\\"))
def test_whatever_is_written_reads_back_the_same(pair: tuple[Any, Any]) -> None:
    kind, value = pair
    cls = holder(kind)
    text = to_toml(as_table(cls(value)))
    assert exactly(build(cls, tomllib.loads(text)), cls(value))


@thorough
@given(KINDS.flatmap(kind_and_value))
def test_a_value_can_be_given_by_set(pair: tuple[Any, Any]) -> None:
    kind, value = pair
    table: dict[str, Any] = {}
    apply(table, f"value={inline_toml(to_plain(value))}")
    assert exactly(build(holder(kind), table).value, value)


@thorough
@given(KINDS.flatmap(lambda kind: kind_and_value(kind) | st.just((kind, None))))
def test_what_may_be_none_is_left_out_then(pair: tuple[Any, Any]) -> None:
    kind, value = pair
    for optional in (Optional[kind], Union[kind, None]):  # noqa: UP007, UP045
        cls = holder(optional, default=None)
        assert exactly(build(cls, tomllib.loads(to_toml(as_table(cls(value))))), cls(value))


def test_an_empty_table_is_not_the_default() -> None:
    cls = holder(dict[str, float], default_factory=lambda: {"a": 1.0})
    assert build(cls, tomllib.loads(to_toml(as_table(cls({}))))) == cls({}) != build(cls, {})


def test_what_toml_cannot_say_is_not_written() -> None:
    with pytest.raises(ConfigError, match=r"Holder\.value is None, which TOML cannot hold: make None its default"):
        as_table(holder(float | None, default=0.5)(None))
    with pytest.raises(ConfigError, match=r"Holder\.value\[1\] is None, which TOML cannot hold"):
        as_table(holder(list[Any])([1, None]))


def test_numbers_of_numpy_are_numbers() -> None:
    written = as_table(holder(list[float])([np.float64(0.1), np.int64(3)]))
    assert to_toml(written) == "value = [0.1, 3]\n"


# Strictness


@thorough
@given(st.sampled_from([*SCALARS]), st.one_of(*SCALARS.values()))
@example(int, True)
@example(float, 10**400)
def test_no_value_becomes_another_but_a_whole_number_a_float(kind: type, value: Any) -> None:
    right = type(value) is kind or (kind is float and type(value) is int and abs(value) < 2**1023)
    shapes: list[tuple[Any, Any, Any]] = [
        (kind, value, lambda made: made),
        (GenericAlias(list, (kind,)), [value], lambda made: made[0]),
        (GenericAlias(tuple, (kind, ...)), [value], lambda made: made[0]),
        (GenericAlias(dict, (str, kind)), {"a": value}, lambda made: made["a"]),
        (Optional[kind], value, lambda made: made),  # noqa: UP045
    ]
    for shape, given_value, one in shapes:
        if right:
            made = one(build(holder(shape), {"value": given_value}).value)
            assert type(made) is kind and made == kind(value)
        else:
            sentence = refused(holder(shape), {"value": given_value})
            assert sentence.startswith(f"method 'mine'.value is {given_value!r}, expected ")


@thorough
@given(KINDS, JUNK)
def test_whatever_is_given_is_taken_whole_or_refused_in_one_sentence(kind: Any, junk: Any) -> None:
    cls = holder(kind)
    try:
        made = build(cls, {"value": junk}, "method 'mine'")
    except ConfigError as error:
        assert len(str(error).splitlines()) == 1 and str(error).startswith("method 'mine'.value")
    else:
        assert exactly(build(cls, tomllib.loads(to_toml(as_table(made)))), made)


@dataclasses.dataclass(frozen=True)
class Layer:
    width: int
    rate: float | None = None


@pytest.mark.parametrize(
    ("kind", "value", "sentence"),
    [
        (tuple[int, ...], ["x"], ".value is ['x'], expected a list of whole numbers such as [3, 4]"),
        (list[str] | None, 3, '.value is 3, expected a list of strings such as ["a", "b"] or nothing'),
        (dict[str, float], {"a": "b"}, ".value is {'a': 'b'}, expected a table of numbers such as {a = 0.5}"),
        (tuple[int, str], [1], '.value is [1], expected a list of a whole number and a string such as [3, "b"]'),
        (Literal["fast", "slow"], "so", ".value is 'so', expected one of: fast, slow"),
        (Literal[1, 2], True, ".value is True, expected one of: 1, 2"),
        (list[Literal["a", "b"]], ["c"], '.value is [\'c\'], expected a list of a or b such as ["a", "b"]'),
        (list[list[int]], [1], ".value is [1], expected a list of lists of whole numbers such as [[3, 4], [3, 4]]"),
        (Optional[float], "1", ".value is '1', expected a number or nothing"),  # noqa: UP045
        (list[Layer], [3], ".value is [3], expected a list of tables such as [{width = ...}, {width = ...}]"),
        (list[Layer], [{"width": 1}, {"widht": 1}], ".value[1] has no key 'widht'; known: width, rate"),
        (list[Layer], [{}], ".value[0] needs width: set it"),
        (Layer | None, {"width": 0.5}, ".value.width is 0.5, expected a whole number"),
        (dict[str, Layer], {"a": {"width": 1, "rate": "x"}}, ".value.a.rate is 'x', expected a number or nothing"),
    ],
)
def test_a_sentence_names_the_key_what_was_given_and_what_to_write(kind: Any, value: Any, sentence: str) -> None:
    assert refused(holder(kind), {"value": value}).startswith(f"method 'mine'{sentence}")


@pytest.mark.parametrize(
    "kind",
    [
        Callable[[int], int],
        Tensor,
        Tensor | None,
        set[int],
        list[Tensor],
        dict[int, float],
        list[int] | tuple[int, ...],
        dict[str, int] | Layer,
        object,
        Literal[b"a"],
    ],
    ids=str,
)
def test_a_type_that_toml_cannot_hold_is_refused_whatever_is_given(kind: Any) -> None:
    for table in ({}, {"value": 3}):
        sentence = refused(holder(kind, default=None), table)
        assert sentence.startswith("Holder declares its field value as ")
        assert "supported: int, float, bool, str, Literal, dataclasses, list, tuple or dict" in sentence


def test_a_type_that_is_not_there_when_the_file_runs_is_refused() -> None:
    assert "cannot be looked up (name 'Missing' is not defined)" in refused(holder("Missing"), {})


def test_fields_that_cannot_be_given_are_no_keys() -> None:
    cls = dataclasses.make_dataclass("Own", [("a", int, 1), ("b", Tensor, dataclasses.field(init=False, default=None))])
    assert as_table(build(cls, {"a": 2})) == {"a": 2}
    assert "has no key 'b'; known: a" in refused(cls, {"b": 1})
