"""Every key of a configuration is declared in one place, with its default."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fedvote
from fedvote.runs.config import Config
from fedvote.runs.field_types import default_of

SOURCE = Path(fedvote.__file__).parent
SECTIONS: dict[str, Any] = {
    name: default_of(Config.__dataclass_fields__[name]) for name in ("federation", "local", "engine")
}


@dataclasses.dataclass(frozen=True)
class Declared:
    """A function or class that gives names of its own defaults, as literals; others, as a reference, are fine."""

    where: str
    line: int
    is_class: bool
    defaults: dict[str, object]


def declarations(file: Path) -> Iterator[Declared]:
    """All functions and classes of a file that give something a default."""
    for node in ast.walk(ast.parse(file.read_text())):
        pairs: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            spots = [*node.args.posonlyargs, *node.args.args]
            pairs += zip(
                (spot.arg for spot in spots[len(spots) - len(node.args.defaults) :]), node.args.defaults, strict=True
            )
            pairs += zip((spot.arg for spot in node.args.kwonlyargs), node.args.kw_defaults, strict=True)
        elif isinstance(node, ast.ClassDef):
            slots = [
                each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            ]
            pairs += [(each.target.id, each.value) for each in slots if isinstance(each.target, ast.Name)]
        else:
            continue
        where = f"{file.relative_to(SOURCE)}: {getattr(node, 'name', 'lambda')}"
        literals = {name: ast.literal_eval(value) for name, value in pairs if value is not None and _literal(value)}
        yield Declared(where, node.lineno, isinstance(node, ast.ClassDef), literals)


def _literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


def again(section: object, found: Declared) -> dict[str, object]:
    """What a declaration repeats: two keys and more with whichever defaults; in a class, one with the same default.

    One parameter of a function may have a key's name by chance: `batch` of something else.
    """
    keys = {slot.name: default_of(slot) for slot in dataclasses.fields(section)}  # type: ignore[arg-type]
    shared = {name: value for name, value in found.defaults.items() if name in keys}
    same = {name: value for name, value in shared.items() if (type(value), value) == (type(keys[name]), keys[name])}
    return shared if len(shared) > 1 else same if found.is_class else {}


@pytest.mark.parametrize("name", SECTIONS)
def test_nothing_else_declares_a_key_with_a_default_of_its_own(name: str) -> None:
    section = SECTIONS[name]
    home = Path(inspect.getfile(type(section))), inspect.getsourcelines(type(section))[1]
    repeated = {
        f"{found.where}, line {found.line}": again(section, found)
        for file in SOURCE.rglob("*.py")
        for found in declarations(file)
        if again(section, found) and not (file == home[0] and abs(found.line - home[1]) <= 1)  # a decorator is above
    }
    assert repeated == {}


def test_a_second_declaration_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "again.py").write_text(
        "class Local:\n    steps: int = 40\n\nclass Stairs:\n    steps: int = 3\n\n"
        "def run(batch, *, steps=3, epochs=0.0): ...\n\ndef other(steps=40, x=40): ...\n"
    )
    found = [again(SECTIONS["local"], each) for each in declarations(tmp_path / "again.py")]
    assert found == [{"steps": 40}, {}, {"steps": 3, "epochs": 0.0}, {}]
