"""Where groups are kept: the partitions of `__consumer_offsets`, written in order and many at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

log = logging.getLogger(__name__)

KeyAndValue: TypeAlias = tuple[bytes | None, bytes | None]

# Well below max.message.bytes, so that what would fit alone is not refused for its neighbours.
_BATCH_BYTES = 256 * 1024


class OffsetsJournal(Protocol):
    """The partitions of `__consumer_offsets` that this broker leads."""

    async def append(self, partition: int, records: Sequence[KeyAndValue]) -> ErrorCode:
        """Write records as one batch; NONE once all in-sync replicas have it.

        It must end: members wait for it, so what takes too long is REQUEST_TIMED_OUT.
        """

    def read_all(self, partition: int) -> AsyncIterator[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of every record there is, in order."""


class _Write(NamedTuple):
    records: Sequence[KeyAndValue]
    written: Callable[[ErrorCode], None]
    done: asyncio.Future[ErrorCode]

    def end(self, error: ErrorCode) -> None:
        self.written(error)
        if not self.done.done():
            self.done.set_result(error)


class JournalWriter:
    """Writes to one partition in the order it is asked to: one batch at a time.

    What comes while a batch is under way goes out together in the next: many commits cost few batches.
    """

    def __init__(self, partition: int, journal: OffsetsJournal) -> None:
        self._partition = partition
        self._journal = journal
        self._queue: deque[_Write] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def write(
        self, records: Sequence[KeyAndValue], written: Callable[[ErrorCode], None]
    ) -> asyncio.Future[ErrorCode]:
        """Have records written. `written` is called however it ends, even if nobody waits for the future."""
        write = _Write(records, written, asyncio.get_running_loop().create_future())
        if self._closed:
            write.end(ErrorCode.NOT_COORDINATOR)
            return write.done
        self._queue.append(write)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        return write.done

    def close(self) -> None:
        """Write nothing more; a batch that is under way ends as it may."""
        self._closed = True
        waiting, self._queue = self._queue, deque()
        for write in waiting:
            write.end(ErrorCode.NOT_COORDINATOR)

    async def stop(self) -> None:
        """Close, and do not even wait for the batch that is under way."""
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
            error = await self._journal.append(self._partition, records)
        except Exception:
            log.exception("groups' partition %d could not be written", self._partition)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        finally:
            for write in batch:
                write.end(error)

    def _next_batch(self) -> list[_Write]:
        batch = [self._queue.popleft()]
        size = _size(batch[0])
        while self._queue and (size := size + _size(self._queue[0])) <= _BATCH_BYTES:
            batch.append(self._queue.popleft())
        return batch


def _size(write: _Write) -> int:
    return sum(len(key or b"") + len(value or b"") for key, value in write.records)


def offset_error(error: ErrorCode) -> ErrorCode:
    """What a client that commits is told when the partition could not be written."""
    return _OFFSET_ERRORS.get(error, error)


def group_error(error: ErrorCode) -> ErrorCode:
    """What members that wait for their group to be written are told when it could not be."""
    return _GROUP_ERRORS.get(error, error)


_SHARED_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)
_OFFSET_ERRORS = _SHARED_ERRORS | dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
_GROUP_ERRORS = _SHARED_ERRORS | dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR)
