"""A client that sends one request after the other, in a version of its choice, and returns the bodies."""

from __future__ import annotations

import socket
import struct
from typing import Any

from restow.wire.codec import encode_request, parse_response

_TIMEOUT_S = 60


class RawClient:
    """One connection to one broker."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
        self._number = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, version: int, body: Any) -> Any:
        """Send a request and return the response's body."""
        self._number += 1
        parts = encode_request(body.API_KEY, version, self._number, "raw", body)
        frame = b"".join(bytes(part) for part in parts)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self._read(4))
        return parse_response(body.API_KEY, version, self._read(size)).body

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self._socket.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data
