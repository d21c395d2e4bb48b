"""What a controller can answer instead of a result. Each carries the code that a client is told.

RestowError
└── ControllerError
    ├── NotController         this broker is not the controller, or stopped being it meanwhile
    ├── Deposed               another controller was elected; whatever was being written is refused
    ├── UnknownBroker         no live broker of that id
    ├── StaleBrokerEpoch      the broker registered anew since it asked
    └── TopicError
        ├── TopicExists
        ├── UnknownTopic
        ├── InvalidTopic           a name that Kafka does not take
        ├── InvalidPartitionCount  partitions that do not follow on those that are there
        ├── InvalidAssignment      replicas that do not fit together
        ├── DeletionPending        the topic is already on its way out
        └── MoveInProgress         replicas of the topic are being moved
"""

from __future__ import annotations

from typing import ClassVar

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode


class ControllerError(RestowError):
    """Base of all of them."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class NotController(ControllerError):
    """Ask the broker that is controller."""

    code = ErrorCode.NOT_CONTROLLER


class Deposed(NotController):
    """The controller epoch moved on. Nothing that this controller decides counts any more."""

    code = ErrorCode.NOT_CONTROLLER


class UnknownBroker(ControllerError):
    """No live broker has that id."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class StaleBrokerEpoch(ControllerError):
    """The request comes from an earlier life of the broker."""

    code = ErrorCode.STALE_BROKER_EPOCH


class TopicError(ControllerError):
    """A request about a topic that cannot be carried out."""


class TopicExists(TopicError):
    """There is a topic of that name."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class UnknownTopic(TopicError):
    """There is no topic of that name."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopic(TopicError):
    """A name that Kafka does not take."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidPartitionCount(TopicError):
    """Partitions that do not follow on those that are there."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidAssignment(TopicError):
    """Replicas that do not fit together."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class DeletionPending(TopicError):
    """The topic is queued for deletion."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class MoveInProgress(TopicError):
    """Some partition of the topic is being moved."""

    code = ErrorCode.REASSIGNMENT_IN_PROGRESS
