"""The embedded store on disk: one SQLite file that one process holds.

It has a row per node that stays. Every write is one transaction in SQLite's write-ahead log; whether
the disk is waited for is the owner's choice.
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
    """The kept nodes and the number of the last transaction."""

    def __init__(self, file: Path, *, fsync: bool) -> None:
        """Open the file, or make it. With `fsync` a write outlives the machine's power, else the process."""
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
        """All nodes and the last transaction's number."""
        try:
            rows = [Row(*row) for row in self._connection.execute("SELECT * FROM nodes")]
            (zxid,) = self._connection.execute("SELECT zxid FROM last").fetchone()
        except sqlite3.Error as error:
            raise StoreUnavailable(_explain(self._file, error)) from error
        return rows, zxid

    def write(self, kept: Sequence[Row], gone: Sequence[str], zxid: int) -> None:
        """Make all of it durable, or raise StoreUnavailable and leave the file as it was."""
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
        """Give the file up."""
        self._connection.close()


def _explain(file: Path, error: sqlite3.Error) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return f"the store's file {file} is held by another process: end that cluster first"
    return f"the store's file {file} cannot be read: {error}"
