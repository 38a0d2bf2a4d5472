"""A proxy that forwards its own port to another port of this machine, counts the bytes, and may be a slow link."""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping
from contextlib import suppress

from fedvote.engines.flower.local_federation import free_port

CHUNK = 1 << 14  # bytes passed on at once


class CountingProxy:
    """`limits`: bytes a second, `up` and `down`, that all connections share; no limit where there is none."""

    def __init__(self, target: int, limits: Mapping[str, float] | None = None) -> None:
        self.target, self.port, self.passed = target, free_port(), {"up": 0, "down": 0}
        self._limits, self._free_at = limits or {}, {"up": 0.0, "down": 0.0}
        threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True).start()

    async def _serve(self) -> None:
        await (await asyncio.start_server(self._connect, "127.0.0.1", self.port)).serve_forever()

    async def _connect(self, client: StreamReader, to_client: StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return to_client.close()
        await asyncio.gather(self._pump(client, to_server, "up"), self._pump(server, to_client, "down"))

    async def _pump(self, source: StreamReader, sink: StreamWriter, way: str) -> None:
        with suppress(OSError):
            while chunk := await source.read(CHUNK):
                await self._wait(way, len(chunk))
                self.passed[way] += len(chunk)
                sink.write(chunk)
                await sink.drain()
        sink.close()

    async def _wait(self, way: str, nbytes: int) -> None:
        """Wait until the link has carried these bytes, after all that came before them."""
        if limit := self._limits.get(way):
            now = asyncio.get_running_loop().time()
            self._free_at[way] = max(now, self._free_at[way]) + nbytes / limit
            await asyncio.sleep(self._free_at[way] - now)
