"""The audit log: one line of JSON for each change that was asked for on a page, by whom and when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from restow.runtime.clock import Clock

FILE_NAME = "audit.jsonl"
_MOST_BYTES = 4 * 1024 * 1024
"""So much of its end is shown; the file keeps all of it."""


class AuditLog:
    """The log of one cluster. It is written before the change is made."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path, self._clock = folder / FILE_NAME, clock

    def write(self, who: str, what: str, **facts: object) -> None:
        """Add a line."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = json.dumps({"at_ms": self._clock.now_ms(), "who": who, "what": what, **facts})
        if not self._path.exists():
            self._path.touch(mode=0o600)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def latest(self) -> list[dict[str, Any]]:
        """Return the lines, newest first."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, self._path.stat().st_size - _MOST_BYTES))
                lines = file.read().splitlines()
        except OSError:
            return []
        found = []
        for line in reversed(lines):
            try:
                said = json.loads(line)
                found.append(
                    {"at_ms": int(said["at_ms"]), "who": str(said["who"]), "what": str(said["what"]), **said}
                )
            except (ValueError, TypeError, KeyError):
                continue
        return found
