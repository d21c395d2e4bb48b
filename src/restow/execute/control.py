"""Changing a run while it runs: wishes in a file beside its journal, which it reads between two looks.

Whoever may write the folder may steer the run; nothing listens on any port for it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError

if TYPE_CHECKING:
    from restow.runtime.disk import Disk

FILE_NAME = "control.json"
CANCEL, LEAVE = "cancel", "leave"


class BadControl(RestowError):
    """The control file does not say what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What somebody wishes of a run; None where nothing is wished."""

    throttle: str | None = None
    """Bytes per second, "auto" or "none"."""
    moves_in: int | None = None
    moves_out: int | None = None
    paused: bool | None = None
    stop: str | None = None
    """"cancel": take back what is under way. "leave": end, and let it go on."""


class Control:
    """One run's control file."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._path = f"{folder}/{FILE_NAME}"
        self._seen: bytes | None = None

    def clear(self) -> None:
        """Wishes of the past are not for whoever begins now."""
        if self._disk.exists(self._path):
            self._disk.remove(self._path)

    def wish(self, wishes: Wishes) -> None:
        """Add to what is wished so far."""
        before = self._load() if self._disk.exists(self._path) else {}
        said = {name: value for name, value in asdict(wishes).items() if value is not None}
        document = {**before, **said, "serial": int(before.get("serial", 0)) + 1}
        self._disk.write_atomically(self._path, json.dumps(document).encode(), durable=False)

    def news(self) -> Wishes | None:
        """What is wished, if that has changed since it was last asked."""
        if not self._disk.exists(self._path):
            return None
        data = self._disk.read_bytes(self._path)
        if data == self._seen:
            return None
        self._seen = data
        document = self._load()
        document.pop("serial", None)
        try:
            return Wishes(**document)
        except TypeError as error:
            raise BadControl(f"{self._path}: {error}") from error

    def _load(self) -> dict[str, Any]:
        try:
            document = json.loads(self._disk.read_bytes(self._path))
        except ValueError as error:
            raise BadControl(f"{self._path} is not JSON ({error}): remove it") from error
        if not isinstance(document, dict):
            raise BadControl(f"{self._path} is not an object: remove it")
        return document
