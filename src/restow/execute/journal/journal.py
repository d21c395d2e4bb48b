"""The journal of a run: the values before every change, written down before the change is made.

Each entry is one line of JSON, numbered, with a checksum. It is on the disk before the run continues. A torn
last line is ignored: the change that it announces was not made yet. Any other damage is an error, because the
journal can no longer be trusted.

    {"n": 3, "at_ms": 1700000000000, "kind": "submitted", …, "crc": 1234567}
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.runtime.clock import Clock
    from restow.runtime.disk import Disk

FILE_NAME = "journal.jsonl"
_ENVELOPE = ("n", "at_ms", "kind", "crc")
_LINE = json.JSONEncoder(ensure_ascii=False)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
"""Made once: with such settings, `dumps` makes one for every call."""


class DamagedJournal(RestowError):
    """The journal's contents have changed since they were written."""


class UnwritableJournal(RestowError):
    """The journal cannot be written, so the change that it would announce is not made."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One change that was about to be made, or an event that had happened."""

    number: int
    at_ms: int
    kind: str
    facts: Mapping[str, object]


class Journal:
    """An open journal; `write` returns when the entry is on the disk."""

    def __init__(self, disk: Disk, clock: Clock, folder: str) -> None:
        """Open the folder's journal to append; create it if missing, cut off a torn last line."""
        self.folder = folder
        self._clock = clock
        try:
            disk.make_directory(folder)
            self._file = disk.open(f"{folder}/{FILE_NAME}", create=True)
            data = self._file.read(0, self._file.size)
        except OSError as error:
            raise UnwritableJournal(f"{folder} cannot hold a journal: {error.strerror or error}") from error
        self._entries, sound = parse_entries(data, f"{folder}/{FILE_NAME}")
        if sound < len(data):
            self._file.truncate(sound)
            self._file.sync()

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        return tuple(self._entries)

    def write(self, kind: str, **facts: object) -> JournalEntry:
        """Append an entry and return when it is on the disk."""
        entry = JournalEntry(len(self._entries), self._clock.now_ms(), kind, facts)
        try:
            self._file.append(_line(entry))
            self._file.sync()
        except OSError as error:
            raise UnwritableJournal(
                f"{self.folder}/{FILE_NAME} cannot be written ({error.strerror or error}), so nothing more "
                "is begun, and throttles stay on. Put that right, then `restow resume` or `restow doctor "
                "--fix`"
            ) from error
        self._entries.append(entry)
        return entry

    def close(self) -> None:
        self._file.close()


def read_journal(disk: Disk, folder: str) -> tuple[JournalEntry, ...]:
    """Return the entries of a journal without opening it for writing."""
    return tuple(parse_entries(journal_bytes(disk, folder), f"{folder}/{FILE_NAME}")[0])


def journal_bytes(disk: Disk, folder: str) -> bytes:
    """Return a journal as it is on the disk."""
    path = f"{folder}/{FILE_NAME}"
    try:
        return disk.read_bytes(path)
    except OSError as error:
        raise DamagedJournal(f"{path} cannot be read: {error.strerror or error}") from error


def _line(entry: JournalEntry) -> bytes:
    body = {"n": entry.number, "at_ms": entry.at_ms, "kind": entry.kind, **entry.facts}
    crc = zlib.crc32(_canonical(body))
    return _LINE.encode({**body, "crc": crc}).encode() + b"\n"


def _canonical(body: Mapping[str, object]) -> bytes:
    return _CANONICAL.encode(body).encode()


def parse_entries(data: bytes, path: str, first: int = 0) -> tuple[list[JournalEntry], int]:
    """Return the entries, and the length in bytes of the sound part.

    The data is a whole journal, or its end from the entry with the number `first` on.
    """
    entries: list[JournalEntry] = []
    sound = 0
    for number, line in enumerate(data.splitlines(keepends=True), first):
        entry = _entry(line)
        if entry is None or entry.number != number:
            if sound + len(line) >= len(data) and not line.endswith(b"\n"):
                break
            raise DamagedJournal(
                f"{path}, line {number + 1}: this is not what was written, so what this run has set and "
                "begun is not known. `restow doctor` shows what is left on the cluster; when that is in "
                "order, move the folder away"
            )
        entries.append(entry)
        sound += len(line)
    return entries, sound


def _entry(line: bytes) -> JournalEntry | None:
    try:
        body = json.loads(line)
        crc = body.pop("crc")
        if crc != zlib.crc32(_canonical(body)):
            return None
        number, at_ms, kind = body["n"], body["at_ms"], body["kind"]
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    if type(number) is not int or type(at_ms) is not int or not isinstance(kind, str):
        return None
    facts = {key: value for key, value in body.items() if key not in _ENVELOPE}
    return JournalEntry(number, at_ms, kind, facts)
