"""Change a run while it is active, with a control file beside its journal that the run polls.

Write access to the folder is enough to control the run; the run listens on no port.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.runtime.disk import Disk

FILE_NAME = "control.json"
CANCEL, LEAVE = "cancel", "leave"
_MOST_LETTERS, _MOST_SHOWN, _MOST_MOVES = 1_000, 100, 1_000_000


class BadControl(RestowError):
    """The control file is not valid."""


@frozen
class ControlRequest:
    """A request to change a run; None for values to keep."""

    throttle: str | None = None
    """Bytes per second, "auto" or "none"."""
    moves_in: int | None = None
    moves_out: int | None = None
    paused: bool | None = None
    gone_on: int | None = None
    """Counts the requests to go on: with each new one, guards put up with what they complain of."""
    stop: str | None = None
    """"cancel": cancel the moves under way. "leave": end the run and let them complete."""


class Control:
    """The control file of one run. Any problem with it raises `BadControl`, once."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{FILE_NAME}"
        self._seen: bytes | None = None
        self._complaint: str | None = None

    def clear(self) -> None:
        """Remove old requests, so that a new run does not obey them."""
        with suppress(OSError):
            if self._disk.exists(self._path):
                self._disk.remove(self._path)

    def request(self, request: ControlRequest) -> None:
        """Add to the requests so far."""
        before = self._load(self._read()) if self._disk.exists(self._path) else {}
        said = {name: value for name, value in asdict(request).items() if value is not None}
        last = before.get("serial")
        serial = last + 1 if type(last) is int else 1
        document = {**before, **said, "serial": serial}
        if request.paused is False:
            document["gone_on"] = serial
        request_of(document, self._path)
        try:
            self._disk.write_atomically(self._path, json.dumps(document).encode(), durable=False)
        except OSError as error:
            raise BadControl(f"{self._path} cannot be written: {error.strerror or error}") from error

    def news(self) -> ControlRequest | None:
        """Return the request if it has changed since the last call."""
        try:
            data = self._read() if self._disk.exists(self._path) else None
            if data is None or data == self._seen:
                return None
            self._seen = data
            request = request_of(self._load(data), self._path)
        except BadControl as error:
            if str(error) == self._complaint:
                return None
            self._complaint = str(error)
            raise
        self._complaint = None
        return request

    def _read(self) -> bytes:
        try:
            return self._disk.read_bytes(self._path)
        except OSError as error:
            raise BadControl(f"{self._path} cannot be read ({error.strerror or error}): remove it") from error

    def _load(self, data: bytes) -> dict[str, Any]:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadControl(f"{self._path} is not JSON ({error}): remove it") from error
        if not isinstance(document, dict):
            raise BadControl(f"{self._path} is not an object: remove it")
        return document


def request_of(document: Mapping[str, Any], where: str) -> ControlRequest:
    """Read a request and check each of its values."""
    fits: dict[str, Callable[[Any], bool]] = {
        "throttle": lambda value: isinstance(value, str) and len(value) <= _MOST_LETTERS,
        "moves_in": _is_count,
        "moves_out": _is_count,
        "paused": lambda value: isinstance(value, bool),
        "gone_on": lambda value: type(value) is int,
        "stop": lambda value: value in (CANCEL, LEAVE),
    }
    said = {name: value for name, value in document.items() if name != "serial" and value is not None}
    for name, value in said.items():
        if name not in fits:
            raise BadControl(f"{where}: nothing is called {name[:_MOST_SHOWN]!r}")
        if not fits[name](value):
            raise BadControl(f"{where}: {name} cannot be {repr(value)[:_MOST_SHOWN]}")
    return ControlRequest(**said)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 < value <= _MOST_MOVES
