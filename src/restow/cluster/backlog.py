"""How much memory a broker's clients hold by not reading what was made for them."""

from __future__ import annotations

_MOST_BYTES = 256 * 1024 * 1024
_LEAST_ANSWER_BYTES = 64 * 1024


class Backlog:
    """What has been read from logs for clients of one broker and has not gone out yet."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.unread_bytes = 0

    @property
    def answer_bytes(self) -> int:
        """How large an answer may be: with much unread, no larger than it takes for everybody to get on."""
        return max(self._most_bytes - self.unread_bytes, _LEAST_ANSWER_BYTES)
