"""A link with latency to an address: what the other side sends arrives a moment later.

with slow_link("127.0.0.1:9092") as address:
    Producer({"bootstrap.servers": address})
"""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from harness.process import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator

LATENCY_S = 0.02
_PIECE_BYTES = 1 << 16


@contextmanager
def slow_link(target: str) -> Iterator[str]:
    """Return an address whose connections lead to the target."""
    host, _, port = target.rpartition(":")

    class Relay(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as server:
                sending = threading.Thread(target=_copy, args=(self.request, server, 0.0))
                sending.start()
                _copy(server, self.request, LATENCY_S)
                sending.join()

    with socketserver.ThreadingTCPServer((HOST, 0), Relay) as relay:
        accepting = threading.Thread(target=relay.serve_forever)
        accepting.start()
        try:
            yield f"{HOST}:{relay.server_address[1]}"
        finally:
            relay.shutdown()
            accepting.join()


def _copy(source: socket.socket, sink: socket.socket, latency_s: float) -> None:
    """Copy until the source ends or the sink is closed, and end the other direction as well."""
    with suppress(OSError):
        while data := source.recv(_PIECE_BYTES):
            time.sleep(latency_s)
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
