"""The package is built in layers, without cycles, of small functions in files with names of their own.

Imports are read from the source; nothing is imported here. Imports under `if TYPE_CHECKING:` bind nothing at run time,
and those within functions run later: both are left out, unless a test says otherwise.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOT = "fedvote"
FILES = sorted((SOURCE / ROOT).rglob("*.py"))

LOWER = {  # by the first two words of a module's name: all of the package that it may import, at any place
    "errors": set(),
    "core": {"errors"},
    "randomness": {"core", "errors", "randomness"},
    "packed": {"core", "errors", "packed"},
    "system": {"core", "errors", "system"},
    "registry": {"errors", "system"},
    "settings": {"errors", "registry"},
    "quantize": {"core", "errors", "packed", "randomness", "settings"},
    "codecs": {"codecs", "core", "errors", "packed", "quantize", "randomness"},
}

SAME_NAME = {  # and why
    "blocks.py": "layers that networks are made of, and columns that a rule takes at a time",
    "server.py": "the server, and the benchmark of it",
    "compiled.py": "loops that are compiled for the CPU, and an exported program that is compiled",
}


def name_of(file: Path) -> str:
    """a/b.py is a.b, and a/__init__.py is a."""
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(file): file for file in FILES}


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def statements(node: ast.AST, *, in_functions: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif is_type_checking(child):
            assert isinstance(child, ast.If)
            yield from statements(ast.Module(child.orelse, []), in_functions=in_functions)
        elif in_functions or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from statements(child, in_functions=in_functions)


@cache
def imported(module: str, in_functions: bool = False) -> frozenset[str]:
    """The modules of the package that a module names in its imports."""
    found = set()
    for statement in statements(parsed(module), in_functions=in_functions):
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        else:
            assert not statement.level, f"{module} imports by a relative name, expected {ROOT}.…"
            origin = statement.module or ""
            inside = {f"{origin}.{alias.name}" for alias in statement.names}
            found |= inside & MODULES.keys()
            if inside - MODULES.keys():
                found.add(origin)
    return frozenset(found & MODULES.keys())


def loaded(module: str) -> set[str]:
    """All that importing a module loads, less what the package itself offers at its front door."""
    seen, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in seen or name == ROOT:
            continue
        seen.add(name)
        waiting += [*imported(name), name.rpartition(".")[0]]  # a package is loaded before the modules in it
    return seen


def test_every_kind_of_import_is_seen() -> None:
    """Or the others here would show nothing."""
    assert "fedvote.packed" in imported("fedvote.quantize")  # from fedvote import packed
    assert "fedvote.system.openmp" in imported("fedvote")  # import fedvote.system.openmp
    assert "fedvote.codecs.frame" in imported("fedvote.codecs")
    assert sum(len(imported(module)) for module in MODULES) > 3 * len(MODULES)
    assert any(imported(module, in_functions=True) > imported(module) for module in MODULES)


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({module: imported(module) - {module} for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("layer", LOWER)
def test_a_lower_layer_imports_nothing_above_it(layer: str) -> None:
    members = [module for module in MODULES if module.split(".")[1:2] == [layer]]
    assert members
    above = {
        (module, other)
        for module in members
        for other in imported(module, in_functions=True)
        if other.split(".")[1:2] not in [[name] for name in LOWER[layer]]
    }
    assert not above


@pytest.mark.parametrize(("one", "other"), [("simulate", "flower"), ("flower", "simulate")])
def test_no_engine_imports_the_other(one: str, other: str) -> None:
    prefixes = [f"{ROOT}.engines.{engine}" for engine in (one, other)]
    mine, theirs = ([module for module in MODULES if f"{module}.".startswith(f"{prefix}.")] for prefix in prefixes)
    assert mine and theirs
    assert not {(module, each) for module in mine for each in imported(module, in_functions=True) if each in theirs}


def test_a_run_folder_needs_no_engine() -> None:
    parts = [f"{ROOT}.runs.{part}" for part in ("folder", "claim", "description", "judged_by", "experiment")]
    assert not {module for part in parts for module in loaded(part) if module.startswith(f"{ROOT}.engines.")}


def test_few_files_stand_at_the_root() -> None:
    assert len([file for file in FILES if file.parent == SOURCE / ROOT]) <= 13


def test_no_function_is_longer_than_60_lines() -> None:
    long = {
        f"{module}:{node.name}": node.end_lineno - node.lineno + 1
        for module in MODULES
        for node in ast.walk(parsed(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
        if node.end_lineno - node.lineno + 1 > 60
    }
    assert not long


def test_a_method_is_a_small_contract() -> None:
    (contract,) = [
        node for node in ast.walk(parsed("fedvote.method")) if isinstance(node, ast.ClassDef) and node.name == "Method"
    ]
    functions = [node.name for node in contract.body if isinstance(node, ast.FunctionDef)]
    assert {"init", "broadcast", "local", "merge", "models"} <= set(functions)
    assert len(functions) <= 11, functions


def test_no_two_files_share_a_name() -> None:
    places = defaultdict(list)
    for file in FILES:
        if file.name != "__init__.py" and file.parent.name != "cli":  # a command has the name of what it runs
            places[file.name].append(str(file.parent.relative_to(SOURCE)))
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert shared.keys() <= SAME_NAME.keys(), shared


DOCS = SOURCE.parent / "docs"
FILE_NAMED = re.compile(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.py)`")
TABLE = re.compile(r"^\| file of `([a-z_/]+)/` \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)


@pytest.mark.parametrize("page", ["architecture.md", "glossary.md"])
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    named = set(FILE_NAMED.findall((DOCS / page).read_text(encoding="utf-8")))
    assert named
    there = ["/" + str(file.relative_to(SOURCE.parent)) for file in [*FILES, *(SOURCE.parent / "tests").rglob("*.py")]]
    assert not {name for name in named if not any(file.endswith(f"/{name}") for file in there)}


def test_a_table_of_a_folder_names_each_of_its_files_once() -> None:
    tables = dict(TABLE.findall((DOCS / "architecture.md").read_text(encoding="utf-8")))
    described = {"engines/flower", "export", "methods/fedvote", "network", "report", "reputation", "runs", "training"}
    assert tables.keys() == described
    for folder, rows in tables.items():
        files = [file.name for file in (SOURCE / ROOT / folder).glob("*.py") if file.name != "__init__.py"]
        assert sorted(FILE_NAMED.findall(rows)) == sorted(files), folder
