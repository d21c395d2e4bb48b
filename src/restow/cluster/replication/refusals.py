"""Maps errors of the log to error codes of the protocol."""

from __future__ import annotations

from restow.cluster.log.errors import (
    BatchTooLarge,
    DiskFailure,
    InvalidRecord,
    InvalidTimestamp,
    LogDirsOffline,
    OffsetOutOfRange,
    OutOfOrderSequence,
    StaleProducerEpoch,
    TopicIdMismatch,
)
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode

_CODES: dict[type[Exception], ErrorCode] = {
    CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    InvalidTimestamp: ErrorCode.INVALID_TIMESTAMP,
    InvalidRecord: ErrorCode.INVALID_RECORD,
    OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    StaleProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    DiskFailure: ErrorCode.KAFKA_STORAGE_ERROR,
    LogDirsOffline: ErrorCode.KAFKA_STORAGE_ERROR,
    TopicIdMismatch: ErrorCode.INCONSISTENT_TOPIC_ID,
}


def code_of(error: Exception) -> ErrorCode:
    """Return the error code; UNKNOWN_SERVER_ERROR for errors not in the table."""
    return _CODES.get(type(error), ErrorCode.UNKNOWN_SERVER_ERROR)


class PartitionRefused(Exception):
    """A request that a partition refuses, with its error code."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.message)
        self.code = code
