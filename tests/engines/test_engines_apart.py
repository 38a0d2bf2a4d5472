"""Neither engine uses the other, not even through a name that some other module passes on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

import fedvote

ROOT = Path(fedvote.__file__).parent
ENGINES = ("fedvote.engines.flower", "fedvote.engines.simulate")
Name = tuple[str, str]  # a module, and a name in it; the name is "" for the module itself


def modules(package: str) -> list[str]:
    """A package and all modules below it."""
    folder = ROOT.joinpath(*package.split(".")[1:])
    files = [file.relative_to(ROOT.parent).with_suffix("") for file in sorted(folder.rglob("*.py"))]
    return [".".join(file.parts).removesuffix(".__init__") for file in files]


@cache
def tree(module: str) -> ast.Module | None:
    """The code of a module; None if there is no such module in the package."""
    path = ROOT.parent.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None


def imported(module: str, node: ast.AST) -> Iterator[tuple[str, Name]]:
    """What an import statement binds: the name here, and where it comes from."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, (alias.name, "")
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"{module} has a relative import, which this test does not follow"
        for alias in node.names:
            source = node.module or ""
            whole = f"{source}.{alias.name}"
            yield alias.asname or alias.name, (whole, "") if tree(whole) is not None else (source, alias.name)


@cache
def scope(module: str) -> SimpleNamespace:
    """The top-level names of a module: those that it imports, and the statements that define the others."""
    code = tree(module)
    assert code is not None
    imports = {name: source for node in ast.walk(code) for name, source in imported(module, node)}
    definitions: dict[str, ast.stmt] = {}
    for node in code.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            definitions |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return SimpleNamespace(imports=imports, definitions=definitions)


def uses(name: Name, seen: dict[Name, Name | None]) -> None:
    """Collect all names of the package that a name's definition refers to, and theirs, each with its user."""
    module, attribute = name
    if tree(module) is None or not attribute:
        return
    here = scope(module)
    if attribute in here.definitions:
        words = {node.id for node in ast.walk(here.definitions[attribute]) if isinstance(node, ast.Name)}
        sources = [here.imports.get(word, (module, word)) for word in sorted(words)]
        sources = [source for source in sources if source[0] != module or source[1] in here.definitions]
    else:
        sources = [here.imports[attribute]] if attribute in here.imports else []
    for source in sources:
        if source not in seen:
            seen[source] = name
            uses(source, seen)


def inside(name: Name | None, package: str) -> bool:
    return name is not None and name[0].startswith(package)


def path_to(name: Name, seen: dict[Name, Name | None]) -> str:
    path = [name]
    while (user := seen[path[-1]]) is not None:
        path.append(user)
    return " <- ".join(":".join(step).rstrip(":") for step in path)


@pytest.mark.parametrize(("engine", "other"), [ENGINES, ENGINES[::-1]], ids=["flower", "simulate"])
def test_an_engine_uses_nothing_of_the_other(engine: str, other: str) -> None:
    seen: dict[Name, Name | None] = {}
    for module in modules(engine):
        for source in scope(module).imports.values():
            if source not in seen:
                seen[source] = (module, "")
                seen.setdefault((module, ""), None)
                uses(source, seen)
    assert any(module == "fedvote.rounds" for module, _ in seen)  # the imports of the package were followed
    found = [path_to(name, seen) for name, user in seen.items() if inside(name, other) and not inside(user, other)]
    assert not found, "\n".join(found)
