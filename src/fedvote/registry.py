"""Parts by name: from a literal dict, or a user's own as FILE.py:NAME."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from fedvote.errors import ConfigError, article, did_you_mean
from fedvote.system.own_code import absolute_name, own_object

Function = TypeVar("Function", bound=Callable[..., Any])


def find(registry: Mapping[str, Any], name: str, where: str) -> Any:
    """Look up a name in a registry, or load the user's own part, named path/to/file.py:Name."""
    if name in registry:
        return registry[name]
    family, _, member = name.partition(":")
    if member and hasattr(registry.get(family), "member"):
        return registry[family].member(member)
    if not name.rpartition(":")[0].endswith(".py"):
        known = f"known: {', '.join(registry)}; or your own as FILE.py:NAME"
        raise ConfigError(f"{where} {name!r} is not known; {known}{did_you_mean(name, registry)}")
    found = own_object(name, where)
    if not callable(found):
        raise ConfigError(f"{where} {name!r} is {article(type(found).__name__)}, expected a class or a function")
    found.registered_as = absolute_name(name)  # to write the configuration back
    return found


def as_class(found: Any, base: type) -> Any:
    """A part's class. If the contract is one function, as for a loss, a plain function becomes a class."""
    wrap = getattr(base, "from_function", None)
    plain = callable(found) and not isinstance(found, type) and not isinstance(found, base)
    return wrap(found) if wrap and plain else found


def resolve_parts(owner: Any) -> None:
    """Turn names in the fields of a frozen dataclass into parts, so that reputation="camps" works in a program, too."""
    for slot in dataclasses.fields(owner):
        if (registry := slot.metadata.get("registry")) is None:
            continue
        given, base = getattr(owner, slot.name), type_hints(type(owner))[slot.name]
        part = slot.default if given is None else given
        item = item_of(base)
        made = parts_of(registry, item, part, slot.name) if item else part_of(registry, base, part, slot.name)
        object.__setattr__(owner, slot.name, made)


def parts_of(registry: Mapping[str, Any], base: type, given: Any, where: str) -> tuple[Any, ...]:
    """Any number of parts, each given by its name or as an object."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"{where} is {given!r}, expected a list of names; known: {', '.join(registry)}")
    return tuple(part_of(registry, base, part, where) for part in given)


def part_of(registry: Mapping[str, Any], base: type, given: Any, where: str) -> Any:
    """A part, given by its name or as an object."""
    made = as_class(find(registry, given, where) if isinstance(given, str) else given, base)
    part = given if made is given else made()
    if not isinstance(part, base):
        known = f"a name or {article(base.__name__)}; known: {', '.join(registry)}"
        raise ConfigError(f"{where} is {given!r}, expected {known}{_as_object(registry, given)}")
    return part


def _as_object(registry: Mapping[str, Any], given: Any) -> str:
    """The end of a sentence about a class, or a table, in a program: how to make the part that it names."""
    if isinstance(given, type):
        return f"; give an object, {given.__name__}(...)"
    name = given.get("name") if isinstance(given, Mapping) else None
    if not isinstance(kind := registry.get(str(name)), type):
        return ""
    package = kind.__module__.rpartition(".")[0]  # it has the name of most parts, too, and that is shorter
    module = package if hasattr(sys.modules[package], kind.__name__) else kind.__module__
    settings = ", ".join(f"{key}={value!r}" for key, value in given.items() if key != "name")
    return f"; in a program, `from {module} import {kind.__name__}`, and give {kind.__name__}({settings})"


def name_of(registry: Mapping[str, Any], part: Any) -> str:
    names = {kind: name for name, kind in registry.items()}
    return names[type(part)] if type(part) in names else str(type(part).registered_as)


def item_of(kind: Any) -> type | None:
    """The class of the items, if a field holds any number of parts: tuple[Part, ...]; else None."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is tuple else None


def cached(function: Function) -> Function:
    """`functools.cache` with the function's own type: mypy says that classes are not hashable."""
    return cast(Function, cache(function))


@cached
def type_hints(cls: type) -> Mapping[str, Any]:
    """Field -> type. Looked up once: it takes longer than everything else in reading a configuration."""
    try:
        return types.MappingProxyType(typing.get_type_hints(cls))
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise ConfigError(
            f"the types of the fields of {cls.__name__} cannot be looked up ({error}): "
            "import or define them at the top of the file, outside of TYPE_CHECKING"
        ) from error
