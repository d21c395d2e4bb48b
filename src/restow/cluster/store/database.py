"""The embedded store's SQLite file, held by one process.

It has a row per persistent node. Every write is one transaction in SQLite's write-ahead log; the owner
chooses whether to wait for the disk.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from restow.cluster.store.errors import StoreUnavailable
from restow.cluster.store.tree import Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FORMAT = 1
_SCHEMA = """
    CREATE TABLE nodes (
        path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL,
        created INTEGER NOT NULL, czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE last (zxid INTEGER NOT NULL);
    INSERT INTO last VALUES (0);
"""


class Database:
    """The persistent nodes and the number of the last transaction."""

    def __init__(self, file: Path, *, fsync: bool) -> None:
        """Open or create the file. With `fsync`, a write survives a power loss, otherwise a process crash."""
        self._file = file
        try:
            self._connection = sqlite3.connect(file, isolation_level=None, timeout=0)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"the store's file {file} cannot be opened: {error}") from error
        try:
            self._prepare(fsync=fsync)
        except sqlite3.Error as error:
            self._connection.close()
            raise StoreUnavailable(_explain(file, error)) from error
        except StoreUnavailable:
            self._connection.close()
            raise

    def _prepare(self, *, fsync: bool) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode = EXCLUSIVE")
        run("PRAGMA journal_mode = WAL")
        run(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
        run("BEGIN IMMEDIATE")
        (found,) = run("PRAGMA user_version").fetchone()
        if found == 0:
            for statement in _SCHEMA.split(";"):
                run(statement)
            run(f"PRAGMA user_version = {_FORMAT}")
        run("COMMIT")
        if found not in {0, _FORMAT}:
            raise StoreUnavailable(
                f"the store's file {self._file} has format {found}, and this Restow knows only {_FORMAT}: "
                "use the version that wrote it, or another data directory"
            )

    def load(self) -> tuple[list[Row], int]:
        """Return all nodes and the last transaction's number."""
        try:
            rows = [Row(*row) for row in self._connection.execute("SELECT * FROM nodes")]
            (zxid,) = self._connection.execute("SELECT zxid FROM last").fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailable(_explain(self._file, error)) from error
        return rows, zxid

    def write(self, kept: Sequence[Row], gone: Sequence[str], zxid: int) -> None:
        """Write everything, or raise StoreUnavailable and leave the file as it was."""
        run = self._connection.execute
        try:
            run("BEGIN IMMEDIATE")
            if gone:
                self._connection.executemany("DELETE FROM nodes WHERE path = ?", ((path,) for path in gone))
            if kept:
                self._connection.executemany("REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?)", kept)
            run("UPDATE last SET zxid = ?", (zxid,))
            run("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise StoreUnavailable(f"the store's file {self._file} cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _explain(file: Path, error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return f"the store's file {file} is held by another process: end that cluster first"
    return f"the store's file {file} cannot be read: {error}"
