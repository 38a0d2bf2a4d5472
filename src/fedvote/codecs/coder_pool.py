"""Coders on cores of their own: lengths of coded symbols, found while the device trains the next clients."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from fedvote.codecs import ans
from fedvote.codecs import coder_process as coder
from fedvote.core import Length

WORTH_IT = 1 << 18  # symbols, that take a millisecond or two
MOST = 4  # coders


def length(symbols: int, blocks: Callable[[], ans.Blocks]) -> Length:
    """How many bytes blocks of so many symbols in all are coded into: at once, or elsewhere if they are many."""
    if symbols < WORTH_IT:
        return len(ans.encode(blocks()))
    ans.library()  # or say now that it is missing
    return _threads().submit(lambda: _elsewhere(blocks()))


def _elsewhere(blocks: ans.Blocks) -> int:
    try:
        program = _program()
        assert program.stdin and program.stdout
        return coder.ask(program.stdin, program.stdout, blocks)
    except OSError:  # it did not start, or has gone
        return len(ans.encode(blocks))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(MOST, (os.cpu_count() or 1) // 2)), thread_name_prefix="coders")


_mine = threading.local()


def _program() -> subprocess.Popen[bytes]:
    """This thread's program."""
    if not hasattr(_mine, "program"):
        command = [sys.executable, "-P", coder.__file__]
        path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        program = subprocess.Popen(command, env=path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(_end, program)
        _mine.program = program
    running: subprocess.Popen[bytes] = _mine.program
    return running


def _end(program: subprocess.Popen[bytes]) -> None:
    program.communicate()
