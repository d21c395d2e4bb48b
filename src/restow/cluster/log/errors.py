"""Errors of a partition's log.

    LogError
    ├── OffsetOutOfRange        a read before the log's start or after its end
    ├── InvalidAppend           refused batches; nothing was appended
    │   ├── BatchTooLarge       a batch above max.message.bytes
    │   ├── InvalidTimestamp    records too far from the broker's clock
    │   ├── InvalidRecord       an inconsistent batch, or one that clients may not send
    │   ├── UnexpectedOffset    fetched batches that do not continue the follower's log
    │   ├── OutOfOrderSequence  an idempotent producer's batches have a gap
    │   ├── StaleProducerEpoch  an idempotent producer that was fenced
    │   ├── InvalidTransaction  a batch that does not fit its producer's transaction
    │   └── CoordinatorFenced   an end marker of a coordinator that was replaced
    ├── InvalidCheckpoint       an unreadable file in the log dir
    ├── UnknownLog              no log of that partition is online here
    ├── TopicIdMismatch         the log belongs to an earlier topic of the same name
    ├── LogDirInUse             another broker uses the log dir, or it is listed twice
    ├── LogDirsOffline          no log can be created, because log dirs are offline
    └── DiskFailure             the disk failed: the whole log dir is offline from then on

Bytes that are no batches raise CorruptBatch of restow.wire.batches. Each error has the code for the client.
"""

from __future__ import annotations

from typing import ClassVar

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode


class LogError(RestowError):
    """Base of all log errors."""

    code: ClassVar = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(LogError):
    """The offset lies before the log's start or after its end."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class InvalidAppend(LogError):
    """Refused batches. Nothing was appended."""


class BatchTooLarge(InvalidAppend):
    """A batch is larger than max.message.bytes."""

    code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTimestamp(InvalidAppend):
    """Records are further from the broker's clock than the topic allows."""

    code = ErrorCode.INVALID_TIMESTAMP


class InvalidRecord(InvalidAppend):
    """An inconsistent batch, or one that clients may not send."""

    code = ErrorCode.INVALID_RECORD

    def __init__(self, message: str, refused: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.refused = refused
        """The numbers of the records to blame, each with what is wrong with it."""


class UnexpectedOffset(InvalidAppend):
    """Batches from the leader do not continue this log."""


class OutOfOrderSequence(InvalidAppend):
    """Batches are missing between the producer's last one and this one."""

    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class StaleProducerEpoch(InvalidAppend):
    """The producer was replaced by one with a higher epoch."""

    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTransaction(InvalidAppend):
    """A batch outside of a transaction while one is open, or in a transaction that nobody has begun."""

    code = ErrorCode.INVALID_TXN_STATE


class CoordinatorFenced(InvalidAppend):
    """A newer coordinator has ended a transaction of this producer."""

    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class InvalidCheckpoint(LogError):
    """An unreadable file in the log dir."""


class UnknownLog(LogError):
    """No log of that partition is online here."""


class TopicIdMismatch(LogError):
    """The log belongs to an earlier topic of the same name."""

    code = ErrorCode.INCONSISTENT_TOPIC_ID


class LogDirInUse(LogError):
    """Another broker, perhaps in another process, uses the log dir."""


class LogDirsOffline(LogError):
    """A log cannot be created: all log dirs are offline, or an offline one may have it."""

    code = ErrorCode.KAFKA_STORAGE_ERROR


class DiskFailure(LogError):
    """The disk failed. The directory and all logs in it are offline from then on."""

    code = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, directory: str, cause: str) -> None:
        super().__init__(f"the log dir {directory} is offline: {cause}")
        self.directory = directory
