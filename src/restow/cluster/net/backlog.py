"""Memory that a broker's clients hold: in responses they have not read, and in waiting requests."""

from __future__ import annotations

_MOST_BYTES = 256 * 1024 * 1024
_LEAST_ANSWER_BYTES = 64 * 1024
_SMALL_REQUEST_BYTES = 64 * 1024


class Backlog:
    """Counts the response bytes read from logs and not sent yet, and apart from them the bytes of requests
    without a response.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.unread_bytes = 0
        self.waiting_bytes = 0
        """Bytes of requests that are being handled."""

    @property
    def answer_bytes(self) -> int:
        """Return the allowed response size. It shrinks with unread bytes, down to a minimum."""
        return max(self._most_bytes - self.unread_bytes, _LEAST_ANSWER_BYTES)

    def has_room_for(self, request_bytes: int) -> bool:
        """Return whether one more request may wait. Small ones always may."""
        return request_bytes <= _SMALL_REQUEST_BYTES or self.waiting_bytes + request_bytes <= self._most_bytes
