"""The user's own Python files, named as FILE.py:NAME: their objects, and whether their code may run."""

from __future__ import annotations

import importlib.util
import sys
import traceback
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedvote.errors import ConfigError, did_you_mean

_named: set[str] = set()  # the FILE.py that the user of this process has named, as absolute paths


def files_in(table: Any) -> list[str]:
    """The absolute paths of all FILE.py in the values of a table, which may have tables and lists in it."""
    if isinstance(table, Mapping | list | tuple):
        values = table.values() if isinstance(table, Mapping) else table
        return list(dict.fromkeys(file for value in values for file in files_in(value)))
    file = table.rpartition(":")[0] if isinstance(table, str) else ""
    return [str(Path(file).resolve())] if file.endswith(".py") else []


def name_files(files: Iterable[str]) -> None:
    """Note that the user of this process has named these files: running them is no surprise."""
    _named.update(files)


def check_trust(source: Path | str, files: Iterable[str]) -> None:
    """Refuse code that only `source` names: anybody may have written it."""
    if strange := [file for file in files if file not in _named and file not in sys.modules]:
        raise ConfigError(
            f"{source} would run {', '.join(strange)}, which this command does not name: read it, and if you trust it, "
            "repeat the command with --trust (in a program: trust=True)"
        )


def absolute_name(name: str) -> str:
    """FILE.py:NAME with the file's absolute path, which is valid in every folder; other names unchanged."""
    file, _, attribute = name.rpartition(":")
    return f"{Path(file).resolve()}:{attribute}" if file.endswith(".py") else name


def own_object(name: str, where: str) -> Any:
    """The object that the user's own file has under a name, given as path/to/file.py:NAME."""
    file, _, attribute = name.rpartition(":")
    if not Path(file).is_file():
        raise ConfigError(f"{where} {name!r}: there is no Python file {file}; expected FILE.py:NAME")
    module = _module(Path(file))
    if not hasattr(module, attribute):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        known = f"it has {', '.join(own) or 'no class or function'}{did_you_mean(attribute, vars(module))}"
        raise ConfigError(f"{where} {name!r}: {file} has no {attribute}; {known}")
    return getattr(module, attribute)


def _module(file: Path) -> types.ModuleType:
    """Import a user's file, once. Its module is named by its absolute path, so it hides no other module."""
    name = str(file.resolve())
    if not name.endswith(".py"):  # a link to compiled code
        raise ConfigError(f"{file} is {name}, expected a file with Python's source: its name ends in .py")
    spec = importlib.util.spec_from_file_location(name, name)
    if name not in sys.modules and spec is not None and spec.loader is not None:
        sys.modules[name] = importlib.util.module_from_spec(spec)  # before it runs: dataclasses look it up
        folder = str(file.resolve().parent)
        if folder not in sys.path:
            sys.path.append(folder)  # the file may import its neighbours, as a script may
        try:
            spec.loader.exec_module(sys.modules[name])
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise ConfigError(f"{file} cannot be loaded: {type(error).__name__}: {error}") from error
    return sys.modules[name]


def user_code_line(error: BaseException) -> str | None:
    """The line of the user's own file where an error arose, and the error; None if no such file is involved."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        if file in sys.modules and file.endswith(".py"):  # only `_module` names modules by paths
            return f"{file}, line {line}, in {frame.f_code.co_name}: {type(error).__name__}: {error}"
    return None
