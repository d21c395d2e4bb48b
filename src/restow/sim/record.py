"""What happened in a run: its events in words, their hash, and the violations.

Exceptions that the brokers did not expect count as violations: one that reached the event loop, and one that
was logged as an error and is neither ours nor the operating system's.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

_LAST_EVENTS = 60
_LOGGER = logging.getLogger("restow.cluster")


class InvariantViolation(NamedTuple):
    """A violated invariant."""

    at_s: float
    what: str

    def __str__(self) -> str:
        return f"{self.at_s:.3f} s: {self.what}"


class EventRecord:
    """The events of one run. With `file`, all of them are written there, and the brokers' log lines."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self.hash = hashlib.blake2b(digest_size=16)
        self.last_events: deque[str] = deque(maxlen=_LAST_EVENTS)
        self.steps = 0
        """How many frames were delivered."""
        self._violations: dict[str, InvariantViolation] = {}

    @property
    def violations(self) -> tuple[str, ...]:
        return tuple(map(str, self._violations.values()))

    def note_frame(self, at_s: float, source: str, target: str, payload: bytes) -> None:
        """Hash a delivered frame."""
        self.steps += 1
        self.hash.update(f"{at_s!r} {source} {target}".encode())
        self.hash.update(payload)

    def note(self, event: str) -> None:
        """Add an event, in words."""
        line = f"{asyncio.get_running_loop().time():.3f} s: {event}"
        self.last_events.append(line)
        self.hash.update(line.encode())
        self.write(line)

    def write(self, line: str) -> None:
        """Write a line to the trace file alone."""
        if self._file is not None:
            self._file.write(f"{line}\n")

    def violated(self, broken: Iterable[str]) -> None:
        """Note violated invariants, each of them once."""
        for what in broken:
            if what not in self._violations:
                self._violations[what] = InvariantViolation(asyncio.get_running_loop().time(), what)
                self.note(f"VIOLATION: {what}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear of unexpected exceptions meanwhile."""
        loop = asyncio.get_running_loop()
        handler = _LogLines(self)
        handler.setLevel(logging.ERROR if self._file is None else logging.INFO)
        level, propagate = _LOGGER.level, _LOGGER.propagate
        _LOGGER.setLevel(handler.level)
        _LOGGER.propagate = False
        _LOGGER.addHandler(handler)
        loop.set_exception_handler(self._heard)
        try:
            yield
        finally:
            _LOGGER.removeHandler(handler)
            _LOGGER.setLevel(level)
            _LOGGER.propagate = propagate

    def _heard(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.violated([f"unexpected exception: {context['message']}: {error!r}"])


class _LogLines(logging.Handler):
    """Passes log lines on to a journal."""

    def __init__(self, journal: EventRecord) -> None:
        super().__init__()
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        self._journal.write(
            f"{asyncio.get_running_loop().time():.3f} s: {record.levelname} {record.name}: {message}"
        )
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, RestowError | OSError):
            self._journal.violated([f"unexpected exception: {message}: {error!r}"])
