"""Storage of groups in `__consumer_offsets`, written in order and in batches.

The transaction coordinator stores its state in `__transaction_state` the same way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from restow.cluster.log.producers import Verification

log = logging.getLogger(__name__)

KeyAndValue: TypeAlias = tuple[bytes | None, bytes | None]

# Well below max.message.bytes, so that a record which fits alone is not refused for its neighbours.
_BATCH_BYTES = 256 * 1024


class TransactionalProducer(NamedTuple):
    """The producer whose transaction records belong to."""

    producer_id: int
    producer_epoch: int
    verification: Verification | None = None
    """That the transaction was begun, as far as the leader has asked."""


class JournalRecord(NamedTuple):
    """A record that was read, or the end of a transaction, which has neither key nor value."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int | None = None
    """The producer whose transaction it belongs to or ends."""
    commits: bool | None = None
    """How it ends a transaction; None for other records."""


class RecordJournal(Protocol):
    """The partitions of `__consumer_offsets`, or of `__transaction_state`, that this broker leads."""

    @property
    def topic(self) -> str:
        """The name of the topic."""

    async def append(
        self, partition: int, records: Sequence[KeyAndValue], producer: TransactionalProducer | None = None
    ) -> ErrorCode:
        """Write records as one batch; NONE once all in-sync replicas have it.

        It must return, because members wait for it: REQUEST_TIMED_OUT if it takes too long.
        """

    def read_all(self, partition: int) -> AsyncIterator[JournalRecord]:
        """Yield every record and every end of a transaction, in order."""


class _Write(NamedTuple):
    records: Sequence[KeyAndValue]
    written: Callable[[ErrorCode], None]
    done: asyncio.Future[ErrorCode]
    producer: TransactionalProducer | None

    def end(self, error: ErrorCode) -> None:
        self.written(error)
        if not self.done.done():
            self.done.set_result(error)


class JournalWriter:
    """Writes to one partition in order, one batch at a time.

    Records that come during a write go out together in the next batch, so many commits cost few batches.
    """

    def __init__(self, partition: int, journal: RecordJournal) -> None:
        self._partition = partition
        self._journal = journal
        self._queue: deque[_Write] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def write(
        self,
        records: Sequence[KeyAndValue],
        written: Callable[[ErrorCode], None],
        producer: TransactionalProducer | None = None,
    ) -> asyncio.Future[ErrorCode]:
        """Write records. `written` is called in any case, even if no caller awaits the future."""
        write = _Write(records, written, asyncio.get_running_loop().create_future(), producer)
        if self._closed:
            write.end(ErrorCode.NOT_COORDINATOR)
            return write.done
        self._queue.append(write)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        return write.done

    def close(self) -> None:
        """Refuse further writes; a batch in flight may finish."""
        self._closed = True
        waiting, self._queue = self._queue, deque()
        for write in waiting:
            write.end(ErrorCode.NOT_COORDINATOR)

    async def stop(self) -> None:
        """Close without waiting for the batch in flight."""
        self.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _write_all(self) -> None:
        try:
            while self._queue:
                await self._write_batch(self._next_batch())
        finally:
            self._task = None

    async def _write_batch(self, batch: list[_Write]) -> None:
        error = ErrorCode.NOT_COORDINATOR
        try:
            records = [record for write in batch for record in write.records]
            error = await self._journal.append(self._partition, records, batch[0].producer)
        except Exception:
            log.exception("%s-%d could not be written", self._journal.topic, self._partition)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        finally:
            for write in batch:
                write.end(error)

    def _next_batch(self) -> list[_Write]:
        batch = [self._queue.popleft()]
        size = _size(batch[0])
        if batch[0].producer is not None:
            return batch
        while (
            self._queue
            and self._queue[0].producer is None
            and (size := size + _size(self._queue[0])) <= _BATCH_BYTES
        ):
            batch.append(self._queue.popleft())
        return batch


def _size(write: _Write) -> int:
    return sum(len(key or b"") + len(value or b"") for key, value in write.records)


def offset_error(error: ErrorCode) -> ErrorCode:
    """Return a commit's error code for a failed write."""
    return _OFFSET_ERRORS.get(error, error)


def group_error(error: ErrorCode) -> ErrorCode:
    """Return the error code for members that wait for a failed write."""
    return _GROUP_ERRORS.get(error, error)


COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""What a coordinator, of groups or of transactions, answers when its records cannot be written."""
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)
_OFFSET_ERRORS = COORDINATOR_ERRORS | dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
_GROUP_ERRORS = COORDINATOR_ERRORS | dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
