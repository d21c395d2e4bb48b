"""An archive of classes for Spark's JVM: with it, a JVM need not read and check some ten thousand classes.

It lies in `classes/` of the cache. The second session that may record it does: Java writes it when the JVM
ends, which takes seconds, so a machine on which Spark starts once shall not wait for it. Java itself ignores
an archive that does not fit.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from restow.pipeline.jars import cache_dir


class ClassArchive:
    """The archive for one Java and one pyspark."""

    def __init__(self, java: str) -> None:
        home, spark = Path(java).resolve(), find_spec("pyspark")
        made_for = (
            home,
            home.stat().st_mtime_ns,
            version("pyspark"),
            None if spark is None else spark.origin,
        )
        name = hashlib.sha256(repr(made_for).encode()).hexdigest()[:16]
        self._path = cache_dir() / "classes" / f"{name}.jsa"
        self._first = self._path.with_suffix(".first")
        self._new = self._path.with_suffix(f".{os.getpid()}")
        self.recording = False

    def option(self, *, record: bool) -> str:
        """Return the option of Java that uses the archive or, from the second time on, records it."""
        if self._path.exists():
            return f'"-XX:SharedArchiveFile={self._path}"'
        if not record:
            return ""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if not self._first.exists():
                self._first.touch()
                return ""
        except OSError:
            return ""
        self.recording = True
        return f'"-XX:ArchiveClassesAtExit={self._new}"'

    def recorded(self, *, whole: bool) -> None:
        """Put what the JVM has recorded in place, if it came to its end; the JVM is gone."""
        if not self.recording:
            return
        with suppress(OSError):
            if whole and self._new.exists():
                self._new.replace(self._path)
                self._first.unlink(missing_ok=True)
            self._new.unlink(missing_ok=True)
