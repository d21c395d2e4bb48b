"""A client that sends every version of every request, with valid and invalid content.

Real clients use their newest version; this one covers the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.handlers import served_versions
from restow.wire import messages
from restow.wire.messages import REQUESTS
from tests.unit.broker.test_every_version import ORDERS, TOPIC, bodies, prepared, produce

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.broker.conversations import Client

NOBODY = "nobody"
STRANGER = UUID(int=12345)
GROUP_KEYS = (11, 12, 13, 14)


class Caller:
    """Sends one request after the other over one connection."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._number = 0

    async def ask(self, key: int, version: int, body: Any) -> Any:
        """Send in that version, or the nearest supported one."""
        served = served_versions()[key]
        version = min(max(version, served[0]), served[-1])
        self._number += 1
        self._client.ask(key, version, self._number, body)
        return await self._client.answer(key, version)


async def ask_everything(folder: Path) -> None:
    """Run on a separate broker."""
    async with EmbeddedCluster(data=folder, fsync=False, log_dirs=2) as cluster:
        client = await prepared(cluster)
        topic_id = cluster.brokers[0].services.metadata.topics[TOPIC].topic_id
        assert topic_id is not None
        caller = Caller(client)
        good, other = bodies(topic_id), more_bodies(topic_id)
        for key, versions in served_versions().items():
            if key in ORDERS | {*GROUP_KEYS}:
                continue
            for version in versions:
                for make in (good.get(key, REQUESTS[key]), *other.get(key, ())):
                    await caller.ask(key, version, make())
        for version in range(10):
            await live_in_a_group(caller, version)
            await change_topics(caller, version)
        for key in sorted(ORDERS):
            for version in served_versions()[key]:
                for fields in ({"broker_epoch": 0}, {"broker_epoch": -1}):
                    body = (
                        REQUESTS[key](**fields) if key == 7 else REQUESTS[key](controller_epoch=0, **fields)
                    )
                    await caller.ask(key, version, body)
        # Last, because it makes the broker leave.
        await caller.ask(7, 3, messages.ControlledShutdownRequest(broker_id=99, broker_epoch=1))


async def live_in_a_group(caller: Caller, version: int) -> None:
    """Join, sync, heartbeat and leave with one member, after an unknown one."""
    name = f"group-{version}"
    join = messages.JoinGroupRequest
    fields: dict[str, Any] = {
        "group_id": name,
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": [join.JoinGroupRequestProtocol(name="range", metadata=b"\x00\x01")],
        "group_instance_id": f"static-{version}" if version in (6, 9) else None,
    }
    for key in (12, 14):
        await caller.ask(key, version, REQUESTS[key](group_id=name, member_id=NOBODY, generation_id=3))
    joined = await caller.ask(11, version, join(member_id="", **fields))
    if joined.error_code:
        joined = await caller.ask(11, version, join(member_id=joined.member_id, **fields))
    assert joined.error_code == 0
    me = {"group_id": name, "member_id": joined.member_id, "generation_id": joined.generation_id}
    sync = messages.SyncGroupRequest
    assigned = sync.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"mine")
    synced = await caller.ask(
        14, version, sync(**me, protocol_type="consumer", protocol_name="range", assignments=[assigned])
    )
    assert synced.assignment == b"mine"
    assert (await caller.ask(12, version, messages.HeartbeatRequest(**me))).error_code == 0
    await caller.ask(15, version, messages.DescribeGroupsRequest(groups=[name, NOBODY]))
    await caller.ask(16, version, messages.ListGroupsRequest(states_filter=["Stable"], types_filter=[]))
    await caller.ask(42, version, messages.DeleteGroupsRequest(groups_names=[name]))
    leave = messages.LeaveGroupRequest
    for member in (NOBODY, joined.member_id):
        listed = [leave.MemberIdentity(member_id=member, group_instance_id=None, reason="done")]
        await caller.ask(13, version, leave(group_id=name, member_id=member, members=listed))
    await caller.ask(42, version, messages.DeleteGroupsRequest(groups_names=[name]))


async def change_topics(caller: Caller, version: int) -> None:
    """Create, expand, configure, write to and delete a topic."""
    name = f"topic-{version}"
    create = messages.CreateTopicsRequest
    config = create.CreatableTopic.CreatableTopicConfig
    wanted = [
        create.CreatableTopic(
            name=topic,
            num_partitions=count,
            replication_factor=replication_factor,
            configs=[config(name=key, value="1")],
        )
        for topic, count, replication_factor, key in (
            (name, 2, 1, "segment.ms"),
            ("bad name", 1, 1, "segment.ms"),
            (f"{name}-odd", 1, 1, "no.such.config"),
            (f"{name}-wide", 1, 9, "segment.ms"),
        )
    ]
    await caller.ask(19, version, create(topics=wanted, timeout_ms=10_000))
    await caller.ask(19, version, create(topics=wanted[:1], timeout_ms=10_000, validate_only=True))
    grow = messages.CreatePartitionsRequest
    for count in (4, 1):
        topics = [
            grow.CreatePartitionsTopic(name=each, count=count, assignments=None) for each in (name, NOBODY)
        ]
        await caller.ask(37, version, grow(topics=topics, timeout_ms=10_000))
    for key in (33, 44):
        request = REQUESTS[key]
        resource = request.AlterConfigsResource
        resources = [
            resource(
                resource_type=2,
                resource_name=name,
                configs=[resource.AlterableConfig(name=each, value="7", config_operation=0)]
                if key == 44
                else [resource.AlterableConfig(name=each, value="7")],
            )
            for each in ("retention.bytes", "no.such.config")
        ]
        for asked in resources:
            await caller.ask(key, version, request(resources=[asked]))
    delete = messages.DeleteTopicsRequest
    states = [delete.DeleteTopicState(name=each, topic_id=None) for each in (name, NOBODY)]
    states.append(delete.DeleteTopicState(name=None, topic_id=STRANGER))
    await caller.ask(20, version, delete(topics=states, topic_names=[name, NOBODY], timeout_ms=10_000))


def more_bodies(topic_id: UUID) -> dict[int, tuple[Callable[[], Any], ...]]:
    """Return requests that cause errors, or large responses."""
    find = messages.FindCoordinatorRequest
    return {
        0: (spoiled, elsewhere),
        1: (
            lambda: fetched(NOBODY, STRANGER),
            lambda: fetched(TOPIC, topic_id, fetch_offset=999),
            lambda: fetched(TOPIC, topic_id, current_leader_epoch=99),
            lambda: fetched(TOPIC, topic_id, last_fetched_epoch=99),
        ),
        2: (lambda: offsets(-1), lambda: offsets(500), lambda: offsets(-3), lambda: offsets(-1, NOBODY)),
        3: (
            lambda: messages.MetadataRequest(topics=None),
            lambda: messages.MetadataRequest(topics=[], allow_auto_topic_creation=False),
            lambda: messages.MetadataRequest(
                topics=[messages.MetadataRequest.MetadataRequestTopic(name="bad name")]
            ),
        ),
        8: (too_much,),
        10: (
            lambda: find(key="t", key_type=1, coordinator_keys=["t", "u"]),
            lambda: find(key="", coordinator_keys=[]),
        ),
        18: (lambda: messages.ApiVersionsRequest(client_software_name="", client_software_version="-"),),
        21: (lambda: cut(0), lambda: cut(10_000), lambda: cut(0, NOBODY)),
        22: (lambda: messages.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1),),
        23: (lambda: epochs(0), lambda: epochs(99), lambda: epochs(0, NOBODY)),
        32: (configs,),
        43: (lambda: elect(TOPIC), lambda: elect(NOBODY)),
        47: (forget,),
    }


def spoiled() -> Any:
    body = produce()
    partition = body.topic_data[0].partition_data[0]
    partition.records = partition.records[:-1] + bytes([partition.records[-1] ^ 1])
    return body


def elsewhere() -> Any:
    body = produce()
    body.topic_data[0].name = NOBODY
    return body


def fetched(topic: str, topic_id: UUID, **fields: int) -> Any:
    topic_class = messages.FetchRequest.FetchTopic
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, **fields}
    return messages.FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            topic_class(topic=topic, topic_id=topic_id, partitions=[topic_class.FetchPartition(**asked)])
        ],
        forgotten_topics_data=[],
        rack_id="",
    )


def offsets(timestamp: int, name: str = TOPIC) -> Any:
    request = messages.ListOffsetsRequest
    topic = request.ListOffsetsTopic
    asked = topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return request(topics=[topic(name=name, partitions=[asked])])


def too_much() -> Any:
    topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    told = topic.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata="x" * 9999
    )
    return messages.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[topic(name=TOPIC, partitions=[told])],
    )


def epochs(epoch: int, name: str = TOPIC) -> Any:
    request = messages.OffsetForLeaderEpochRequest
    topic = request.OffsetForLeaderTopic
    asked = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    return request(replica_id=-1, topics=[topic(topic=name, partitions=[asked])])


def cut(offset: int, name: str = TOPIC) -> Any:
    request = messages.DeleteRecordsRequest
    topic = request.DeleteRecordsTopic
    asked = topic.DeleteRecordsPartition(partition_index=0, offset=offset)
    return request(topics=[topic(name=name, partitions=[asked])], timeout_ms=1000)


def forget() -> Any:
    request = messages.OffsetDeleteRequest
    topic = request.OffsetDeleteRequestTopic
    asked = topic.OffsetDeleteRequestPartition(partition_index=0)
    return request(group_id="g", topics=[topic(name=TOPIC, partitions=[asked])])


def elect(name: str) -> Any:
    request = messages.ElectLeadersRequest
    return request(topic_partitions=[request.TopicPartitions(topic=name, partitions=[0])], timeout_ms=1000)


def configs() -> Any:
    request = messages.DescribeConfigsRequest
    resource = request.DescribeConfigsResource
    named = ((2, NOBODY), (4, "0"), (4, "77"), (4, ""), (8, "0"), (2, TOPIC))
    return request(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=None) for kind, name in named
        ]
    )
