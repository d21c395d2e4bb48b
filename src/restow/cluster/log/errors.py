"""What a partition's log refuses, and what can go wrong with it.

    LogError
    ├── OffsetOutOfRange        a read before the log's start or behind its end
    ├── InvalidAppend           batches that may not be appended; nothing was
    │   ├── BatchTooLarge       a batch above max.message.bytes
    │   ├── InvalidTimestamp    records too far from the broker's clock
    │   ├── InvalidRecord       a batch that contradicts itself, or that clients may not send
    │   ├── UnexpectedOffset    a follower's batches that do not go on where its log ends
    │   ├── OutOfOrderSequence  an idempotent producer left something out
    │   └── StaleProducerEpoch  an idempotent producer that another one has replaced
    ├── InvalidCheckpoint       a file of the log dir that cannot be read as what it should be
    ├── UnknownLog              no log of that partition is online here
    ├── TopicIdMismatch         the log belongs to an earlier topic of the same name
    ├── LogDirInUse             another broker has the log dir, or this one has it twice
    ├── LogDirsOffline          nothing can be made, because log dirs are offline
    └── DiskFailure             the disk did not do as told: the whole log dir is offline from then on

Bytes that are no batches at all raise CorruptBatch of restow.wire.batches.
"""

from __future__ import annotations

from restow.errors import RestowError


class LogError(RestowError):
    """Base of all of them."""


class OffsetOutOfRange(LogError):
    """The offset lies before the log's start or behind its end."""


class InvalidAppend(LogError):
    """Batches that may not be appended. Nothing of them was."""


class BatchTooLarge(InvalidAppend):
    """A batch is larger than max.message.bytes."""


class InvalidTimestamp(InvalidAppend):
    """Records are further from the broker's clock than the topic allows."""


class InvalidRecord(InvalidAppend):
    """A batch that contradicts itself, or that clients may not send."""


class UnexpectedOffset(InvalidAppend):
    """Batches from the leader do not go on where this log ends."""


class OutOfOrderSequence(InvalidAppend):
    """Between the producer's last batch and this one, something is missing."""


class StaleProducerEpoch(InvalidAppend):
    """The producer was replaced by one with a higher epoch."""


class InvalidCheckpoint(LogError):
    """A file of the log dir that cannot be read as what it should be."""


class UnknownLog(LogError):
    """No log of that partition is online here."""


class TopicIdMismatch(LogError):
    """The log belongs to an earlier topic of the same name."""


class LogDirInUse(LogError):
    """Another broker, perhaps in another process, has the log dir at this moment."""


class LogDirsOffline(LogError):
    """A log cannot be made, because all log dirs are offline or one of them may have it."""


class DiskFailure(LogError):
    """The disk did not do as told. The directory and all logs in it are offline from then on."""

    def __init__(self, directory: str, cause: str) -> None:
        super().__init__(f"the log dir {directory} is offline: {cause}")
        self.directory = directory
