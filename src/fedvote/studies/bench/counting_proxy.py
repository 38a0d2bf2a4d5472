"""A proxy that forwards its own port to another port of this machine, and counts the bytes."""

from __future__ import annotations

import asyncio
import threading
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from fedvote.engines.flower.local_federation import free_port


class CountingProxy:
    def __init__(self, target: int) -> None:
        self.target, self.port, self.passed = target, free_port(), {"up": 0, "down": 0}
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
            while chunk := await source.read(1 << 16):
                self.passed[way] += len(chunk)
                sink.write(chunk)
                await sink.drain()
        sink.close()
