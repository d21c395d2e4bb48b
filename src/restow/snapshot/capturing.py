"""Ask a cluster for everything in a snapshot.

Topics, log dirs and reassignments are requested one after the other, so a snapshot of a busy cluster spans
the time between the requests. If a reassignment ends meanwhile, they are requested again: its partition would
seem to be at rest with all replicas, old and new. A broker that does not describe its log dirs is listed, and
does not delay the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.client import DENIALS, BrokerError, ClientError, ConfigResource, ConsumerGroup
from restow.model import Copy, LiveBroker, ReadingGroup, ReadingMember, Snapshot, TopicPartition
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client import Admin, BrokerLogDirs, Config, KafkaAdmin, PartitionReassignment
    from restow.model import BrokerId, Partition, Topic
    from restow.runtime.clock import Clock

_TRIES = 3
_MIN_INSYNC = "min.insync.replicas"
_DEFAULT_BROKER = ConfigResource("broker", "")


async def capture(admin: Admin, clock: Clock) -> Snapshot:
    """Return a snapshot of the whole cluster. Sensitive configs have no values, as brokers send them."""
    taken_ms = clock.now_ms()
    view = await admin.describe_cluster()
    brokers = [node.id for node in view.nodes]
    moves = await admin.list_partition_reassignments()
    for _ in range(_TRIES):
        topics = await admin.describe_topics()
        disks = await admin.describe_log_dirs(brokers)
        before, moves = moves, await admin.list_partition_reassignments()
        if before.keys() <= moves.keys():
            break
    configs = await admin.describe_configs(
        (
            _DEFAULT_BROKER,
            *(ConfigResource("broker", str(broker)) for broker in brokers),
            *(ConfigResource("topic", topic.name) for topic in topics),
        )
    )
    told = {broker: answer for broker, answer in disks.items() if not isinstance(answer, BrokerError)}
    copies = _copies(told)
    return Snapshot(
        cluster_id=view.cluster_id,
        taken_ms=taken_ms,
        controller=await _controller(admin),
        brokers=tuple(
            LiveBroker(
                id=node.id,
                host=node.host,
                port=node.port,
                rack=node.rack,
                log_dirs=told[node.id].log_dirs if node.id in told else (),
                configs=_set_for(configs.get(ConfigResource("broker", str(node.id))), "broker"),
            )
            for node in view.nodes
        ),
        topics=tuple(
            _topic(topic, configs.get(ConfigResource("topic", topic.name)), moves, copies) for topic in topics
        ),
        default_configs=_set_for(configs.get(_DEFAULT_BROKER), "default broker"),
        unanswered=tuple(broker for broker in brokers if broker not in told),
        hidden_topics=await hidden_topics(admin, topics, (*copies, *moves)),
        denied=denied(disks, configs),
    )


async def capture_with_groups(admin: KafkaAdmin, clock: Clock) -> Snapshot:
    """Return a snapshot that also has the consumer groups of both protocols that we may describe."""
    taken = await capture(admin, clock)
    found: list[ReadingGroup] = []
    lacking: list[str] = []
    for broker in taken.brokers:
        try:
            answers = await admin.describe_consumer_groups(broker.id)
        except ClientError:  # its coordinator is loading, or it has no such request: groups only inform
            continue
        found += [_group(each, broker.id) for each in answers.values() if isinstance(each, ConsumerGroup)]
        lacking += [f"DESCRIBE on group {name}" for name, each in answers.items() if _is_denied(each)]
    return replace(
        taken,
        groups=tuple(sorted(found, key=lambda each: each.name)),
        denied=tuple(sorted({*taken.denied, *lacking})),
    )


def _group(described: ConsumerGroup, coordinator: BrokerId) -> ReadingGroup:
    return ReadingGroup(
        name=described.name,
        protocol=described.protocol,
        state=described.state,
        coordinator=coordinator,
        members=tuple(ReadingMember(each.id, each.rack, each.held) for each in described.members),
    )


async def hidden_topics(
    admin: Admin, topics: Iterable[Topic], elsewhere: Iterable[TopicPartition]
) -> tuple[str, ...]:
    """Return the names of topics that we may not describe.

    Metadata silently omits them. Log dirs and reassignments name every topic to a client that may describe
    the cluster, so the partitions found there (`elsewhere`) reveal them. A topic deleted a moment ago looks
    the same, and so does a stray log: brokers answer which are forbidden.
    """
    missing = {each.topic for each in elsewhere} - {topic.name for topic in topics}
    if not missing:
        return ()
    told = await admin.permissions(sorted(missing))
    return tuple(sorted(name for name in missing if told.topics.get(name) == frozenset()))


def denied(
    disks: Mapping[BrokerId, BrokerLogDirs | BrokerError],
    configs: Mapping[ConfigResource, Mapping[str, Config] | BrokerError],
) -> tuple[str, ...]:
    """Name the missing ACLs that left something out of these answers."""
    found = set()
    if any(_is_denied(answer) for answer in disks.values()):
        found.add("DESCRIBE on the cluster")
    for of, answer in configs.items():
        if _is_denied(answer):
            found.add(f"DESCRIBE_CONFIGS on {f'topic {of.name}' if of.of == 'topic' else 'the cluster'}")
    return tuple(sorted(found))


def _is_denied(answer: object) -> bool:
    return isinstance(answer, BrokerError) and answer.code in DENIALS


async def _controller(admin: Admin) -> BrokerId | None:
    try:
        return await admin.controller()
    except ClientError:
        return None


def _copies(disks: Mapping[BrokerId, BrokerLogDirs]) -> dict[TopicPartition, tuple[Copy, ...]]:
    found: dict[TopicPartition, list[Copy]] = {}
    for broker, answer in sorted(disks.items()):
        for each in answer.replicas:
            found.setdefault(each.partition, []).append(each.copy_on(broker))
    return {partition: tuple(copies) for partition, copies in found.items()}


def _topic(
    topic: Topic,
    configs: Mapping[str, Config] | BrokerError | None,
    moves: Mapping[TopicPartition, PartitionReassignment],
    copies: Mapping[TopicPartition, tuple[Copy, ...]],
) -> Topic:
    known = {} if configs is None or isinstance(configs, BrokerError) else configs
    least = known.get(_MIN_INSYNC)
    return replace(
        topic,
        partitions=tuple(
            _partition(each, moves.get(name), copies.get(name, ()))
            for each in topic.partitions
            for name in (TopicPartition(topic.name, each.number),)
        ),
        configs=_set_for(known, "topic"),
        min_insync_replicas=int(least.value) if least is not None and least.value else 1,
    )


def _partition(
    partition: Partition, move: PartitionReassignment | None, copies: tuple[Copy, ...]
) -> Partition:
    if move is None:
        return partition._replace(copies=copies)
    return partition._replace(
        replicas=move.replicas, adding=move.adding, removing=move.removing, copies=copies
    )


def _set_for(configs: Mapping[str, Config] | BrokerError | None, source: str) -> dict[str, str]:
    """Return the configs set at this level; none if there was no answer."""
    if configs is None or isinstance(configs, BrokerError):
        return {}
    return {
        name: config.value
        for name, config in sorted(configs.items())
        if config.source == source and config.value is not None
    }


async def snapshot(admin: Admin) -> Snapshot:
    """Take a snapshot of the cluster that an admin is connected to.

    async with connected(settings) as admin:
        taken = await restow.snapshot(admin)
    """
    return await capture(admin, SystemClock())
