"""Entropy coders in processes of their own: they count coded bytes while the device trains the next clients."""

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

WORTH_IT = 1 << 18  # symbols, which take a millisecond or two
MOST = 4  # processes


def length(symbols: int, blocks: Callable[[], ans.Blocks]) -> Length:
    """Bytes that the coded blocks take; `symbols`: their total. Many symbols are counted by another process."""
    if symbols < WORTH_IT:
        return len(ans.encode(blocks()))
    ans.library()  # raises now if it is missing
    return _threads().submit(lambda: _length_in_process(blocks()))


def _length_in_process(blocks: ans.Blocks) -> int:
    try:
        program = _program()
        assert program.stdin and program.stdout
        return coder.ask(program.stdin, program.stdout, blocks)
    except OSError:  # the process did not start, or has died
        return len(ans.encode(blocks))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(MOST, (os.cpu_count() or 1) // 2)), thread_name_prefix="coders")


_per_thread = threading.local()


def _program() -> subprocess.Popen[bytes]:
    """The coder process of this thread, started at the first call."""
    if not hasattr(_per_thread, "program"):
        command = [sys.executable, "-P", coder.__file__]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        program = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        atexit.register(program.communicate)
        _per_thread.program = program
    running: subprocess.Popen[bytes] = _per_thread.program
    return running
