"""Create, expand and delete topics by writing znodes, for the request handlers.

The controller sees the znodes and does the rest. Each function writes everything or nothing.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from restow.cluster.controller.errors import ControllerError
from restow.cluster.store import BadVersion, CheckVersion, Create, NodeExists, NoNode, Set
from restow.cluster.store.znodes import DeleteTopic, EntityConfig, TopicZNode
from restow.model import ReplicaAssignment
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.store import Operation, Store
    from restow.runtime.chance import Chance

_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)


def random_topic_id(chance: Chance) -> str:
    """Return 22 characters of base64. None starts with a dash: command lines take that for an option."""
    while True:
        found = urlsafe_b64encode(chance.uuid().bytes).decode().rstrip("=")
        if not found.startswith("-"):
            return found


async def create_topic(
    store: Store,
    name: str,
    assignment: Mapping[int, tuple[int, ...]],
    configs: Mapping[str, str],
    topic_id: str,
) -> None:
    """Write the topic and its config. Raises ControllerError if it exists or the request is invalid."""
    _check_name(name)
    _check_assignment(assignment, first=0, replication_factor=None)
    topic = TopicZNode(
        topic_id=topic_id, partitions={number: ReplicaAssignment(each) for number, each in assignment.items()}
    )
    config_path = EntityConfig.topic_path(name)
    config = EntityConfig(configs).encode()
    while True:
        left_over = await store.exists(config_path)
        first: Operation = Create(config_path, config) if left_over is None else Set(config_path, config)
        try:
            await store.multi([first, Create(TopicZNode.path(name), topic.encode())])
        except NodeExists as error:
            if error.path == TopicZNode.path(name) or await store.exists(TopicZNode.path(name)):
                raise ControllerError(
                    ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists already"
                ) from None
        except NoNode:
            continue
        else:
            return


async def assigned_replicas(store: Store, name: str) -> dict[int, tuple[int, ...]]:
    """Return the replicas of each partition, in the store and not as brokers know them; none if no topic."""
    if not _can_be_a_topic(name):  # it would name another node, or none at all
        return {}
    try:
        node = await store.get(TopicZNode.path(name))
    except NoNode:
        return {}
    topic = TopicZNode.decode(node.data, TopicZNode.path(name))
    return {number: each.replicas for number, each in topic.partitions.items()}


async def create_partitions(store: Store, name: str, added: Mapping[int, tuple[int, ...]]) -> None:
    """Add partitions, numbered on from the existing ones."""
    while True:
        try:
            node = await store.get(TopicZNode.path(name))
        except NoNode:
            raise ControllerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}") from None
        topic = TopicZNode.decode(node.data, TopicZNode.path(name))
        if any(each.adding or each.removing for each in topic.partitions.values()):
            raise ControllerError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"replicas of topic {name} are being reassigned: wait until that is done",
            )
        if await store.exists(DeleteTopic.path(name)):
            raise ControllerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name} is queued for deletion")
        if 0 not in topic.partitions:
            raise ControllerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"topic {name} has no partition 0 to take the replication factor from",
            )
        _check_assignment(
            added, first=len(topic.partitions), replication_factor=len(topic.partitions[0].replicas)
        )
        more = {number: ReplicaAssignment(each) for number, each in added.items()}
        grown = TopicZNode(topic_id=topic.topic_id, partitions={**topic.partitions, **more})
        try:
            await store.multi([Set(TopicZNode.path(name), grown.encode(), node.stat.version)])
        except (BadVersion, NoNode):
            continue
        return


async def delete_topic(store: Store, name: str) -> None:
    """Queue a topic for deletion. Repeating the request is no error."""
    try:
        await store.multi([CheckVersion(TopicZNode.path(name)), Create(DeleteTopic.path(name))])
    except NoNode as error:
        if error.path != TopicZNode.path(name):
            raise
        raise ControllerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}") from None
    except NodeExists:
        return


def _can_be_a_topic(name: str) -> bool:
    return name not in (".", "..") and _NAME.fullmatch(name) is not None


def _check_name(name: str) -> None:
    if not _can_be_a_topic(name):
        raise ControllerError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:60]!r} cannot be a topic: 1 to 249 letters, digits, dots, underscores and dashes, "
            "and not just one or two dots",
        )


def _check_assignment(
    assignment: Mapping[int, tuple[int, ...]], *, first: int, replication_factor: int | None
) -> None:
    if sorted(assignment) != list(range(first, first + len(assignment))) or not assignment:
        raise ControllerError(
            ErrorCode.INVALID_PARTITIONS,
            f"partitions must be numbered from {first} without a gap, and be at least one, "
            f"but they are {sorted(assignment)[:10]}",
        )
    for number, replicas in assignment.items():
        replication_factor = len(replicas) if replication_factor is None else replication_factor
        if not replicas or len(set(replicas)) != len(replicas) or min(replicas) < 0:
            raise ControllerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {number} has replicas {list(replicas)}: give each broker once, and at least one",
            )
        if len(replicas) != replication_factor:
            raise ControllerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"partition {number} has {len(replicas)} replicas, others have {replication_factor}: "
                "make them the same",
            )
