"""How much memory a broker's clients hold: in answers they do not read, and in requests that wait."""

from __future__ import annotations

_MOST_BYTES = 256 * 1024 * 1024
_LEAST_ANSWER_BYTES = 64 * 1024
_SMALL_REQUEST_BYTES = 64 * 1024


class Backlog:
    """Counts what was read from logs for clients of one broker and has not gone out yet, and, apart from
    that, what they have sent and is not answered yet."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.unread_bytes = 0
        self.waiting_bytes = 0
        """Of requests that are being answered."""

    @property
    def answer_bytes(self) -> int:
        """How large an answer may be: with much unread, no larger than it takes for everybody to get on."""
        return max(self._most_bytes - self.unread_bytes, _LEAST_ANSWER_BYTES)

    def has_room_for(self, request_bytes: int) -> bool:
        """Whether one more request may wait for its answer. Small ones always may."""
        return request_bytes <= _SMALL_REQUEST_BYTES or self.waiting_bytes + request_bytes <= self._most_bytes
