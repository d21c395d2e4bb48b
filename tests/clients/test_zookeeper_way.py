"""The old way, through ZooKeeper: on bare nodes, on our brokers, and on Apache Kafka 3.9.1."""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kazoo.client import KazooClient

from harness.apache import apache_kafka
from harness.brokers import broker_processes
from harness.zookeeper import zookeeper
from restow.client import (
    BrokerError,
    ClientError,
    ConfigResource,
    ConnectionSettings,
    NewTopic,
    PartitionReassignment,
    TopicPartitionReplica,
    Unreachable,
    connected,
    zookeeper_connected,
)
from restow.errors import InvalidAddress
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from harness.zookeeper import ZooKeeper
    from restow.client import Admin, Node, ZooKeeperAdmin

# kafka-python leaves a refused socket to the garbage collector, which warns of it.
pytestmark = pytest.mark.jvm

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SESSION_S = 45
"""No broker dies here, so none may lose its session when the machine stalls."""
PATIENT = {"zookeeper.session.timeout.ms": str(1000 * SESSION_S)}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    with needs_kafka(), zookeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


class Nodes:
    """A tree as an old Kafka leaves it, under a root of its own, without any Kafka."""

    def __init__(self, client: KazooClient, address: str) -> None:
        self.client = client
        self.address = address

    def put(self, path: str, document: object) -> None:
        self.client.ensure_path(path)
        self.client.set(path, document if isinstance(document, bytes) else json.dumps(document).encode())

    def get(self, path: str) -> Any:
        return json.loads(self.client.get(path)[0])

    def do(self, work: Callable[[ZooKeeperAdmin], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with zookeeper_connected(self.address) as admin:
                return await work(admin)

        return asyncio.run(main())


@pytest.fixture
def nodes(server: ZooKeeper, request: pytest.FixtureRequest) -> Iterator[Nodes]:
    root = f"/{abs(hash(request.node.name))}"
    plain = KazooClient(server.address, timeout=SESSION_S)
    plain.start(timeout=SESSION_S)
    plain.ensure_path(root)
    plain.chroot = root
    made = Nodes(plain, server.address + root)
    for broker in (1, 2, 3):
        made.put(f"/brokers/ids/{broker}", {"version": 1, "host": "h", "port": 9000 + broker})
    made.put("/brokers/topics/t", {"version": 1, "partitions": {"0": [1, 2], "1": [2, 1]}})
    for number in (0, 1):
        state = {"version": 1, "leader": 1, "isr": [1, 2], "leader_epoch": 0, "controller_epoch": 1}
        made.put(f"/brokers/topics/t/partitions/{number}/state", state)
    yield made
    plain.delete("/", recursive=True)
    plain.stop()
    plain.close()


def codes(outcome: Mapping[Any, BrokerError | None]) -> dict[Any, ErrorCode | None]:
    return {each: error and error.code for each, error in outcome.items()}


def test_admin_reads_an_old_tree(nodes: Nodes) -> None:
    view = nodes.do(lambda admin: admin.describe_cluster())
    assert view.cluster_id == ""
    assert nodes.do(lambda admin: admin.controller()) is None
    assert [(node.id, node.host, node.port, node.rack) for node in view.nodes] == [
        (1, "h", 9001, None),
        (2, "h", 9002, None),
        (3, "h", 9003, None),
    ]
    (topic,) = nodes.do(lambda admin: admin.describe_topics())
    assert (topic.name, topic.id) == ("t", None)
    assert [(each.replicas, each.leader, each.isr) for each in topic.partitions] == [
        ((1, 2), 1, (1, 2)),
        ((2, 1), 1, (1, 2)),
    ]
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION: topic 'none'"):
        nodes.do(lambda admin: admin.describe_topics(["none"]))


def test_reassignment_is_written_once(nodes: Nodes) -> None:
    asked = {
        T0: (3, 1),
        T1: (1, 1),
        TopicPartition("t", 2): (1,),
        TopicPartition("none", 0): (1,),
    }
    first = nodes.do(lambda admin: admin.alter_partition_reassignments(asked))
    assert codes(first) == {
        T0: None,
        T1: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        TopicPartition("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        TopicPartition("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    entry = {"topic": "t", "partition": 0, "replicas": [3, 1]}
    assert nodes.get("/admin/reassign_partitions") == {"version": 1, "partitions": [entry]}
    second = nodes.do(lambda admin: admin.alter_partition_reassignments({T1: (3, 1), T0: None}))
    assert codes(second) == {T1: ErrorCode.REASSIGNMENT_IN_PROGRESS, T0: ErrorCode.UNSUPPORTED_VERSION}
    assert nodes.get("/admin/reassign_partitions")["partitions"] == [entry]
    assert nodes.do(lambda admin: admin.list_partition_reassignments()) == {
        T0: PartitionReassignment(replicas=(3, 1, 2), adding=(3,), removing=(2,))
    }
    assert nodes.do(lambda admin: admin.list_partition_reassignments([T1])) == {}


@pytest.mark.parametrize(
    ("replicas", "may_change", "code"),
    [
        ((), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 3), False, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_target_that_a_controller_would_ignore_is_not_written(
    nodes: Nodes, replicas: tuple[int, ...], may_change: bool, code: ErrorCode
) -> None:
    outcome = nodes.do(
        lambda admin: admin.alter_partition_reassignments(
            {T0: replicas}, allow_replication_factor_change=may_change
        )
    )
    assert codes(outcome) == {T0: code}
    assert nodes.client.exists("/admin/reassign_partitions") is None


def test_configs_are_merged_and_brokers_are_notified(nodes: Nodes) -> None:
    nodes.put("/config/topics/t", {"version": 1, "config": {"retention.ms": "5", "flush.ms": "7"}})
    topic, everyone, one = (
        ConfigResource("topic", "t"),
        ConfigResource("broker", ""),
        ConfigResource("broker", "2"),
    )
    none = ConfigResource("topic", "none")
    changes = {
        topic: {"retention.ms": None, "min.insync.replicas": "2"},
        everyone: {"leader.replication.throttled.rate": "9"},
        one: {"follower.replication.throttled.rate": "8"},
        none: {"flush.ms": "1"},
    }
    outcome = nodes.do(lambda admin: admin.incremental_alter_configs(changes))
    assert codes(outcome) == {
        topic: None,
        everyone: None,
        one: None,
        none: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert nodes.get("/config/topics/t")["config"] == {"flush.ms": "7", "min.insync.replicas": "2"}
    told = [
        nodes.get(f"/config/changes/{each}") for each in sorted(nodes.client.get_children("/config/changes"))
    ]
    assert [each["entity_path"] for each in told] == ["topics/t", "brokers/<default>", "brokers/2"]
    found = nodes.do(lambda admin: admin.describe_configs([topic, everyone, one]))
    assert {of: {each.name: each.value for each in some.values()} for of, some in found.items()} == {
        topic: {"flush.ms": "7", "min.insync.replicas": "2"},
        everyone: {"leader.replication.throttled.rate": "9"},
        one: {"follower.replication.throttled.rate": "8"},
    }


def test_election_without_a_controller_times_out(nodes: Nodes) -> None:
    def hasty(admin: ZooKeeperAdmin) -> Awaitable[Any]:
        """Use a short timeout here only: a short session would not survive a busy machine's stalls."""
        admin._timeout_s = 1.0
        return admin.elect_leaders([T0, TopicPartition("t", 7)])

    outcome = nodes.do(hasty)
    assert codes(outcome) == {
        T0: ErrorCode.REQUEST_TIMED_OUT,
        TopicPartition("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert nodes.get("/admin/preferred_replica_election")["partitions"] == [{"topic": "t", "partition": 0}]


def test_unsupported_requests_say_so(nodes: Nodes) -> None:
    async def work(admin: Admin) -> None:
        replica = TopicPartitionReplica(T0, 1)
        outcomes: list[Mapping[Any, Any]] = [
            await admin.describe_log_dirs([1]),
            await admin.alter_replica_log_dirs({replica: "/d"}),
            await admin.create_topics([NewTopic(name="x", partitions=1, replication_factor=1)]),
            await admin.delete_topics(["t"]),
        ]
        for outcome in outcomes:
            assert set(codes(outcome).values()) == {ErrorCode.UNSUPPORTED_VERSION}
        for call in (admin.api_versions(1), admin.create_partitions("t", 5)):
            with pytest.raises(BrokerError, match="use --bootstrap-server"):
                await call

    nodes.do(work)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b'{"version":1}', b'{"partitions":{"0":5}}'])
def test_node_that_is_no_topic_is_named(nodes: Nodes, data: bytes) -> None:
    nodes.put("/brokers/topics/t", data)
    with pytest.raises(ClientError, match="the node /brokers/topics/t in ZooKeeper"):
        nodes.do(lambda admin: admin.describe_topics())


@pytest.mark.parametrize("address", ["", ":2181", "a:b", "a:1,", "a:1 b:2", "a:1/x y", "zookeeper://a:1"])
def test_invalid_address_is_refused(address: str) -> None:
    async def main() -> None:
        async with zookeeper_connected(address):
            raise AssertionError("somebody answered")

    with pytest.raises(InvalidAddress, match="is not HOST:PORT"):
        asyncio.run(main())


def test_zookeeper_without_kafka_and_no_zookeeper_are_reported(server: ZooKeeper) -> None:
    async def main(address: str, timeout_s: float = 30.0) -> None:
        async with zookeeper_connected(address, timeout_s):
            raise AssertionError("somebody answered")

    with pytest.raises(Unreachable, match="no Kafka brokers under /nowhere"):
        asyncio.run(main(f"{server.address}/nowhere"))
    with pytest.raises(Unreachable, match="no ZooKeeper answers"):
        asyncio.run(main("127.0.0.1:1", timeout_s=1.0))


@contextmanager
def ours(folder: Path) -> Iterator[tuple[str, str]]:
    with broker_processes(folder, count=3, configs=PATIENT) as brokers:
        yield brokers.bootstrap, f"{brokers.zookeeper.address}/restow"


@contextmanager
def apaches(folder: Path) -> Iterator[tuple[str, str]]:
    with (
        zookeeper(folder / "zookeeper") as server,
        apache_kafka(folder / "kafka", nodes=3, zookeeper=f"{server.address}/kafka") as cluster,
    ):
        yield cluster.bootstrap, f"{server.address}/kafka"


@pytest.mark.parametrize(
    "cluster", [ours, pytest.param(apaches, marks=[pytest.mark.apache, pytest.mark.full])]
)
def test_cluster_is_changed_through_its_nodes(cluster: Any, tmp_path: Path) -> None:
    """The values read are those of the brokers; the values written take effect."""

    async def main(bootstrap: str, address: str) -> None:
        async with (
            connected(ConnectionSettings(bootstrap=bootstrap)) as wire,
            zookeeper_connected(address) as old,
        ):
            by_hand = {0: (1, 2), 1: (2, 1)}
            assert await wire.create_topics([NewTopic(name="t", by_hand=by_hand)]) == {"t": None}
            await until(lambda: _nodes(wire), await _nodes(old))
            assert (await old.describe_cluster()).cluster_id == (await wire.describe_cluster()).cluster_id
            await until(lambda: _agree(old, wire), True)
            rate = {"leader.replication.throttled.rate": "12345678"}
            of = ConfigResource("broker", "2")
            assert await old.incremental_alter_configs(
                {of: rate, ConfigResource("topic", "t"): {"retention.ms": "86400000"}}
            ) == {
                of: None,
                ConfigResource("topic", "t"): None,
            }
            await until(lambda: _value(wire, of, "leader.replication.throttled.rate"), "12345678")
            await until(lambda: _value(wire, ConfigResource("topic", "t"), "retention.ms"), "86400000")
            assert await old.alter_partition_reassignments({T0: (3, 1), T1: (1, 2)}) == {T0: None, T1: None}
            await until(lambda: _moving(old), {})
            await until(lambda: _replicas(wire), [(3, 1), (1, 2)])
            await until(lambda: _agree(old, wire), True)
            assert codes(await old.elect_leaders([T0, T1])) == {T0: None, T1: None}
            assert [each.leader for each in (await old.describe_topics(["t"]))[0].partitions] == [3, 1]

    with needs_kafka(), cluster(tmp_path) as (bootstrap, address):
        asyncio.run(main(bootstrap, address))


async def until(ask: Callable[[], Awaitable[object]], answer: object) -> None:
    for _ in range(600):
        got = await ask()
        if got == answer:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{got!r} is not {answer!r}")


async def _value(admin: Admin, of: ConfigResource, name: str) -> str | None:
    found = (await admin.describe_configs([of]))[of]
    assert not isinstance(found, BrokerError)
    return found[name].value if name in found else None


async def _agree(old: Admin, wire: Admin) -> bool:
    """Compare both clients. A broker that does not know a new topic yet denies that it exists."""
    try:
        return await old.describe_topics(["t"]) == await wire.describe_topics(["t"])
    except BrokerError:
        return False


async def _nodes(admin: Admin) -> tuple[Node, ...]:
    return (await admin.describe_cluster()).nodes


async def _moving(admin: Admin) -> Mapping[TopicPartition, PartitionReassignment]:
    return await admin.list_partition_reassignments()


async def _replicas(admin: Admin) -> list[tuple[int, ...]]:
    (topic,) = await admin.describe_topics(["t"])
    return [each.replicas for each in topic.partitions]
