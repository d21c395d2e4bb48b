"""Writes of a reassignment: assignments to topics' znodes, removals from `/admin/reassign_partitions`."""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.cluster.controller.guarded import readable
from restow.cluster.store import BadVersion, Delete, NoNode, Set, StoreError
from restow.cluster.store.znodes import ReassignPartitions, TopicZNode
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.controller.tools import Tools
    from restow.cluster.store import StoreNode
    from restow.model import ReplicaAssignment

Assignments: TypeAlias = "Mapping[TopicPartition, ReplicaAssignment]"

_log = logging.getLogger(__name__)


async def write_assignments(tools: Tools, changes: Assignments) -> set[TopicPartition]:
    """Write one znode per topic. Return the partitions that could not be written; the log says why.

    Each znode is read first and written conditionally, so partitions added meanwhile stay, and a topic
    created again under the same name is left alone.
    """
    by_topic: defaultdict[str, dict[int, ReplicaAssignment]] = defaultdict(dict)
    for (topic, number), assignment in changes.items():
        by_topic[topic][number] = assignment
    failed: set[TopicPartition] = set()
    left: Mapping[str, Mapping[int, ReplicaAssignment]] = by_topic
    while left:
        left = await _attempt(tools, left, failed)
    return failed


async def _attempt(
    tools: Tools, by_topic: Mapping[str, Mapping[int, ReplicaAssignment]], failed: set[TopicPartition]
) -> dict[str, Mapping[int, ReplicaAssignment]]:
    """Return the partitions that another writer changed meanwhile, to try them again."""
    writes: dict[str, Set] = {}
    nodes = await tools.store.read.get_each([TopicZNode.path(name) for name in by_topic])
    for (name, assignments), node in zip(by_topic.items(), nodes, strict=True):
        try:
            writes[name] = _changed(name, tools.context.topic_ids.get(name), assignments, node)
        except StoreError as error:
            _log.error("the replicas of topic %s cannot be written: %s", name, error)
            failed.update(TopicPartition(name, number) for number in assignments)
    again = {}
    answers = await tools.store.multi_each([(write,) for write in writes.values()])
    for name, answer in zip(writes, answers, strict=True):
        if isinstance(answer, BadVersion):
            again[name] = by_topic[name]
        elif isinstance(answer, StoreError):
            _log.error("the replicas of topic %s were not written: %s", name, answer)
            failed.update(TopicPartition(name, number) for number in by_topic[name])
    return again


def _changed(
    name: str, topic_id: str | None, assignments: Mapping[int, ReplicaAssignment], node: StoreNode | None
) -> Set:
    path = TopicZNode.path(name)
    if node is None:
        raise NoNode(path)
    topic = TopicZNode.decode(node.data, path)
    if topic.topic_id != topic_id or not assignments.keys() <= topic.partitions.keys():
        raise StoreError(f"{path} is the node of another topic now", path=path)
    return Set(
        path, replace(topic, partitions={**topic.partitions, **assignments}).encode(), node.stat.version
    )


class ReassignmentRequest(NamedTuple):
    """The request znode and its creation transaction, which differs for a later znode of that path."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    born: int


async def read_request(store: GuardedStore) -> ReassignmentRequest | None:
    """Return the request, or None without one. An unreadable request has no entries."""
    try:
        node = await store.read.get(ReassignPartitions.PATH)
    except NoNode:
        return None
    return ReassignmentRequest(_targets(node), node.stat.czxid)


async def take_out(store: GuardedStore, is_over: Callable[[TopicPartition, tuple[int, ...]], bool]) -> None:
    """Remove finished entries, and the znode itself if it is then empty or unreadable."""
    path = ReassignPartitions.PATH
    while True:
        try:
            node = await store.read.get(path)
        except NoNode:
            return
        targets = _targets(node)
        left = {key: replicas for key, replicas in targets.items() if not is_over(key, replicas)}
        if left and len(left) == len(targets):
            return
        version = node.stat.version
        change = Set(path, ReassignPartitions(left).encode(), version) if left else Delete(path, version)
        try:
            await store.multi([change])
        except (BadVersion, NoNode):
            continue
        return


def _targets(node: StoreNode) -> Mapping[TopicPartition, tuple[int, ...]]:
    request = readable(ReassignPartitions.decode, node, ReassignPartitions.PATH)
    return {} if request is None else request.targets
