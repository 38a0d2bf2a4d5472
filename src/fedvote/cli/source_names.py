"""The names and keys of a configuration, parsed from the package's source: importing it would load torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def names_in(registry: str) -> list[str]:
    """The names in a literal dict, given as `module:DICT`."""
    module, _, table = registry.partition(":")
    return [name for _, name, _ in _entries(module, table)]


def configuration_keys() -> list[str]:
    """Every key of a configuration, in the order of its file."""
    return list(dict.fromkeys(_keys("fedvote.runs.config", "Config", "")))


def _keys(module: str, name: str, path: str) -> Iterator[str]:
    """The fields of a dataclass and of its parts; nothing if the name is no class of this package."""
    home, kind = _find(module, name)
    if not isinstance(kind, ast.ClassDef):
        return
    for base in kind.bases:
        yield from _keys(home, ast.unparse(base), path)
    for slot in kind.body:
        if not isinstance(slot, ast.AnnAssign) or ast.unparse(slot.annotation).startswith("ClassVar"):
            continue
        key = path + ast.unparse(slot.target)
        called = ast.unparse(slot.value.func) if isinstance(slot.value, ast.Call) else ""
        parts = [] if called == "field" else list(_keys(home, called, f"{key}."))
        yield from parts or [key]
        if (optional := ast.unparse(slot.annotation)).endswith(" | None"):
            yield from _keys(home, optional.removesuffix(" | None"), f"{key}.")
        if registry := _registry(slot.value):
            many = "[]" if ast.unparse(slot.annotation).startswith("tuple[") else ""
            for table_home, _, part in _entries(home, registry):
                yield from _keys(table_home, ast.unparse(part), f"{key}{many}.")


def _registry(value: ast.expr | None) -> str | None:
    """The DICT of `field(metadata={"registry": DICT})`."""
    for node in ast.walk(value) if value else ():
        if isinstance(node, ast.Dict) and [ast.unparse(key) for key in node.keys if key] == ["'registry'"]:
            return ast.unparse(node.values[0])
    return None


def _entries(module: str, name: str) -> Iterator[tuple[str, str, ast.expr]]:
    """The entries of a literal dict, and of the dicts that it includes: the module, the name, the value."""
    home, table = _find(module, name)
    assert isinstance(table, ast.Dict), f"{name} of {module} is no literal dict"
    for key, value in zip(table.keys, table.values, strict=True):
        if key is None:
            yield from _entries(home, ast.unparse(value))
        else:
            yield home, ast.literal_eval(key), value


def _find(module: str, name: str) -> tuple[str, ast.AST | None]:
    """The module that defines a name, and the class or value; None if no module of this package does."""
    found = _definitions(module).get(name)
    return _find(found, name) if isinstance(found, str) else (module, found)


@cache
def _definitions(module: str) -> dict[str, ast.AST | str | None]:
    """Name -> class, value, or for an imported name the module that it comes from."""
    folder = PACKAGE.parent.joinpath(*module.split("."))
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    found: dict[str, ast.AST | str | None] = {}
    for node in ast.parse(file.read_bytes()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[ast.unparse(node.target)] = node.value
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fedvote."):
            found |= {alias.name: node.module for alias in node.names}
    return found
