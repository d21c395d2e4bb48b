"""Errors of the controller. Each carries the error code for the client.

RestowError
└── ControllerError
    ├── NotController         this broker is not the controller, or no longer is
    ├── Deposed               another controller was elected, so the write was refused
    ├── UnknownBroker         no live broker has that id
    ├── StaleBrokerEpoch      the broker has registered again since the request
    └── TopicError
        ├── TopicExists
        ├── UnknownTopic
        ├── InvalidTopic           a name that Kafka does not allow
        ├── InvalidPartitionCount  partition numbers that do not continue the existing ones
        ├── InvalidAssignment      duplicate, missing or unequally many replicas
        ├── DeletionPending        the topic is queued for deletion
        └── MoveInProgress         replicas of the topic are being moved
"""

from __future__ import annotations

from typing import ClassVar

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode


class ControllerError(RestowError):
    """Base of all controller errors."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class NotController(ControllerError):
    """This broker is not the controller."""

    code = ErrorCode.NOT_CONTROLLER


class Deposed(NotController):
    """A later controller was elected. Nothing that this one decides counts any more."""

    code = ErrorCode.NOT_CONTROLLER


class UnknownBroker(ControllerError):
    """No live broker has that id."""

    code = ErrorCode.BROKER_NOT_AVAILABLE


class StaleBrokerEpoch(ControllerError):
    """The request comes from an earlier registration of the broker."""

    code = ErrorCode.STALE_BROKER_EPOCH


class TopicError(ControllerError):
    """A request about a topic that cannot be carried out."""


class TopicExists(TopicError):
    """A topic with that name exists."""

    code = ErrorCode.TOPIC_ALREADY_EXISTS


class UnknownTopic(TopicError):
    """No topic has that name."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidTopic(TopicError):
    """A name that Kafka does not allow."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidPartitionCount(TopicError):
    """Partition numbers that do not continue the existing ones."""

    code = ErrorCode.INVALID_PARTITIONS


class InvalidAssignment(TopicError):
    """Duplicate, missing or unequally many replicas."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class DeletionPending(TopicError):
    """The topic is queued for deletion."""

    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class MoveInProgress(TopicError):
    """A partition of the topic is being reassigned."""

    code = ErrorCode.REASSIGNMENT_IN_PROGRESS
