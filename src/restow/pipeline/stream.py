"""A streaming query that stops between two batches.

It finishes a batch that has begun. It skips a batch that is only planned, if `may_skip` allows it.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput, RestowError
from restow.pipeline.checkpoints import hold
from restow.pipeline.connect import is_connect
from restow.pipeline.files import lake_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame

_TOO_SLOW = "failed to connect back"
"""Spark gives a Python process ten seconds to start, which may be too little on a busy machine."""
_TRIES = 5
_NOTED_WITHIN_S, _LOOK_EVERY_S = 60, 0.05


class StreamFailed(RestowError):
    """A streaming query ended by itself."""


class Stream:
    """Runs `work` on each batch of `frame`, with the batch's number.

    `may_skip` decides whether to skip a batch that is planned when the stream should end. The stream ends
    after `most` batches. `trigger` holds the arguments of Spark's `trigger`.
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
        """Start the query, or raise `CheckpointTaken`."""
        if is_connect(self._frame.sparkSession):
            raise InvalidInput(
                f"{self._name} needs Spark's driver in this process, and a Connect server has it elsewhere: "
                "give another --master, such as local[*]"
            )
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
        """Finish the running batch, then stop."""
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
        """Wait until Spark has committed the last batch, which would otherwise come again."""
        if self._done is None:
            return
        files = lake_files(self._frame.sparkSession)
        looks = round(_NOTED_WITHIN_S / _LOOK_EVERY_S)
        while self._query.isActive and looks:
            if files.exists(f"{self._checkpoint}/commits/{self._done}"):
                return
            threading.Event().wait(_LOOK_EVERY_S)
            looks -= 1

    def end_soon(self) -> None:
        """Start no further batch."""
        self._ending.set()

    @property
    def ended(self) -> bool:
        """Return whether the stream has ended; raise its error if it failed."""
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
    """Return the cause: the last line of a Python traceback, else the first line of Spark's message."""
    said = said.partition("=== Streaming Query ===")[0]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    raised = [line for line in lines if ": " in line and not line.startswith(("at ", "File ", "==="))]
    return (raised[-1] if raised else lines[0]) if lines else "without a reason"
