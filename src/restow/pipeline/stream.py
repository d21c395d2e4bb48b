"""A streaming query that runs until it is told to stop, and stops between two batches.

A batch that has begun is finished; one that is planned when the end is near is left out, if nobody misses it.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError
from restow.pipeline.checkpoints import hold
from restow.pipeline.files import LakeFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame

_TOO_SLOW = "failed to connect back"
"""Spark gives a process of Python ten seconds to start, which on a busy machine may be too few."""
_TRIES = 5
_NOTED_WITHIN_S, _LOOK_EVERY_S = 60, 0.05


class StreamFailed(RestowError):
    """A streaming query ended by itself."""


class Stream:
    """Batches of `frame`, each handed to `work` with its number.

    `may_skip` says of a batch that is planned when the end is near whether nobody misses it. After `most`
    batches it ends. `trigger` is what Spark's `trigger` takes.
    """

    def __init__(
        self,
        frame: DataFrame,
        work: Callable[[DataFrame, int], None],
        *,
        name: str,
        checkpoint: str,
        trigger: dict[str, Any],
        may_skip: Callable[[int], bool] | None = None,
        most: int | None = None,
    ) -> None:
        self._frame = frame
        self._work = work
        self._name = name
        self._checkpoint = checkpoint
        self._trigger = trigger
        self._may_skip = may_skip
        self._left = most
        self._busy = threading.Lock()
        self._ending = threading.Event()
        self._error: Exception | None = None
        self._done: int | None = None
        self._tries_left = _TRIES
        self._held = ExitStack()
        self._query: Any = None

    def __enter__(self) -> Stream:
        """Begin, or say who goes on from this checkpoint already."""
        self._held.enter_context(hold(self._checkpoint))
        self._begin()
        return self

    def _begin(self) -> None:
        writer = self._frame.writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self._checkpoint).trigger(**self._trigger)
        self._query = writer.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish the batch that is being worked on, and end."""
        self.end_soon()
        try:
            if error is None or isinstance(error, Exception):
                with self._busy:
                    pass
                self._wait_until_noted()
            self._query.stop()
        finally:
            self._held.close()

    def _wait_until_noted(self) -> None:
        """Spark notes a batch down when our part of it is done; one that is not noted would come again."""
        if self._done is None:
            return
        files = LakeFiles(self._frame.sparkSession)
        looks = round(_NOTED_WITHIN_S / _LOOK_EVERY_S)
        while self._query.isActive and looks:
            if files.exists(f"{self._checkpoint}/commits/{self._done}"):
                return
            threading.Event().wait(_LOOK_EVERY_S)
            looks -= 1

    def end_soon(self) -> None:
        """Begin no further batch."""
        self._ending.set()

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to come. Raises what went wrong, if something did."""
        if self._query.isActive:
            if self._error is not None and _TOO_SLOW not in str(self._error):
                raise self._error
            return self._ending.is_set()
        failure = self._error or self._query.exception()
        if failure is None:
            return True
        if _TOO_SLOW in str(failure) and self._tries_left:
            self._tries_left -= 1
            self._error = None
            self._begin()
            return False
        if self._error is not None:
            raise self._error
        raise StreamFailed(f"{self._name} stopped: {_reason(str(failure))}")

    def _batch(self, frame: DataFrame, number: int) -> None:
        with self._busy:
            if self._ending.is_set() and self._may_skip is not None and self._may_skip(number):
                return
            try:
                self._work(frame, number)
            except Exception as error:
                self._error = error
                raise
            self._done = number
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    self._ending.set()


def _reason(said: str) -> str:
    """What is at the bottom of it: the last line of a Python traceback, or else Spark's first."""
    said = said.partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    raised = [line for line in lines if ": " in line and not line.startswith(("at ", "File ", "==="))]
    return (raised[-1] if raised else lines[0]) if lines else "for no reason that it tells"
