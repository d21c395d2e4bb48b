"""Rules for new topics and partitions, and their replica placement. Decides without writing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from restow.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    RestowError,
)
from restow.placement import RackMode, create_partitions, place
from restow.placement.by_hand import check_known, check_replicas
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.cluster.controller import Controller
    from restow.model import Broker
    from restow.runtime.chance import Chance

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
_LONGEST_NAME = 249
_MOST_AT_ONCE = 10_000
FROM_DEFAULT = -1
"""Stands for the broker's default count."""

_CODES = (
    (InvalidPartitions, ErrorCode.INVALID_PARTITIONS),
    (InvalidReplicationFactor, ErrorCode.INVALID_REPLICATION_FACTOR),
    (InvalidReplicaAssignment, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
)


class TopicRefused(RestowError):
    """A refused request: the error code and a message."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or f"{code.message}.")
        self.code = code


def check_served_here(controller: Controller) -> None:
    """Refuse what only the controller's broker does."""
    if not controller.is_active:
        raise TopicRefused(ErrorCode.NOT_CONTROLLER, "This broker is not the controller; ask that one.")


def check_named_once(name: str, times: int) -> None:
    """Refuse a topic that one request names more than once."""
    if times > 1:
        raise TopicRefused(ErrorCode.INVALID_REQUEST, f"Topic '{name}' is in the request {times} times.")


def check_name(name: str) -> None:
    """Refuse names that Kafka refuses, because a name becomes a directory."""
    if name in ("", ".", ".."):
        raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} cannot be the name of a topic.")
    if len(name) > _LONGEST_NAME:
        raise TopicRefused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"A topic's name has at most {_LONGEST_NAME} characters; this one has {len(name)}.",
        )
    if not _LEGAL.fullmatch(name):
        raise TopicRefused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name!r} cannot be the name of a topic: use letters, digits, '.', '_' and '-'.",
        )


def is_legal_name(name: str) -> bool:
    """Return whether a topic may have that name."""
    try:
        check_name(name)
    except TopicRefused:
        return False
    return True


def check_new_name(name: str, existing: Iterable[str]) -> None:
    """Refuse an existing name, and one that collides in metric names: `a.b` beside `a_b`."""
    check_name(name)
    flat = name.replace(".", "_")
    for other in existing:
        if other == name:
            raise TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if other.replace(".", "_") == flat:
            raise TopicRefused(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with the existing topic '{other}': "
                "'.' and '_' count as the same in names of metrics.",
            )


def new_assignment(
    brokers: Sequence[Broker],
    *,
    partitions: int,
    replication_factor: int,
    chance: Chance,
    by_hand: Mapping[int, Sequence[int]] | None = None,
) -> dict[int, tuple[int, ...]]:
    """Return a new topic's replicas: the manual ones if given, otherwise placed as Kafka does."""
    check_count(partitions if by_hand is None else len(by_hand))
    try:
        if by_hand is None:
            rng = np.random.default_rng(chance.randrange(1 << 63))
            placed = place(brokers, partitions, replication_factor, rng=rng, rack_mode=RackMode.SAFE)
            return {number: tuple(replicas) for number, replicas in enumerate(placed.tolist())}
        if sorted(by_hand) != list(range(len(by_hand))):
            raise InvalidReplicaAssignment("Partitions given by hand must be numbered from 0 without gaps.")
        check_replicas(by_hand, replication_factor=len(by_hand[0]))
        check_known(by_hand, brokers)
        return {number: tuple(by_hand[number]) for number in sorted(by_hand)}
    except RestowError as error:
        raise _refused(error) from error


def check_count(partitions: int) -> None:
    """Refuse more partitions than one request may create, over all its topics.

    Kafka has this limit since KRaft; before that, the size of a znode was the limit.
    """
    if partitions > _MOST_AT_ONCE:
        raise TopicRefused(
            ErrorCode.POLICY_VIOLATION,
            f"{partitions} partitions are too many for one request: at most {_MOST_AT_ONCE} at a time.",
        )


def more_partitions(
    current: Mapping[int, Sequence[int]],
    brokers: Sequence[Broker],
    *,
    to: int,
    by_hand: Sequence[Sequence[int]] | None = None,
) -> dict[int, tuple[int, ...]]:
    """Return the replicas of the partitions to add up to `to`. A manual assignment names only those."""
    count = len(current)
    if to <= count:
        raise TopicRefused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic has {count} partitions already; {to} would not be more."
            if to < count
            else f"The topic already has {count} partitions.",
        )
    check_count(to - count)
    if by_hand is not None and len(by_hand) != to - count:
        raise TopicRefused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{to - count} partitions are to be added, but replicas are given for {len(by_hand)}.",
        )
    named = None if by_hand is None else {**current, **dict(enumerate(by_hand, start=count))}
    try:
        added = create_partitions(current, brokers, to, by_hand=named, rack_mode=RackMode.SAFE)
    except RestowError as error:
        raise _refused(error) from error
    return {number: tuple(replicas) for number, replicas in added.items()}


def _refused(error: RestowError) -> TopicRefused:
    for kind, code in _CODES:
        if isinstance(error, kind):
            return TopicRefused(code, str(error))
    return TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR, str(error))
