"""Our znodes' bytes against Kafka's own encoders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from restow.cluster.store.znodes import (
    PERSISTENT_PATHS,
    ConfigChange,
    EntityConfig,
    LogDirEvent,
    PartitionStateZNode,
    ReassignPartitions,
)
from restow.model import TopicPartition

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

FEW = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
IDS = st.integers(0, 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


class Scala:
    """Kafka's singletons and collections, in a form that hypothesis can print."""

    def __init__(self, gateway: JavaGateway) -> None:
        self.jvm = gateway.jvm
        self.converters = self.singleton("scala.jdk.javaapi.CollectionConverters")

    def __repr__(self) -> str:
        return "Scala()"

    def singleton(self, name: str) -> Any:
        return self.jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)

    def znode(self, name: str) -> Any:
        return self.singleton(f"kafka.zk.{name}")

    def list(self, values: Any) -> Any:
        return self.converters.asScala(values).toList()


@pytest.fixture(scope="session")
def scala(gateway: JavaGateway) -> Scala:
    return Scala(gateway)


def test_persistent_paths_equal_those_of_kafka(scala: Scala) -> None:
    assert tuple(scala.converters.asJava(scala.znode("ZkData").PersistentZkPaths())) == PERSISTENT_PATHS


@given(values=st.dictionaries(TEXTS, TEXTS, max_size=1))
@FEW
def test_config_znodes_equal_those_of_kafka(scala: Scala, values: dict[str, str]) -> None:
    properties = scala.jvm.java.util.Properties()
    for key, value in values.items():
        properties.setProperty(key, value)
    assert EntityConfig(values).encode() == bytes(scala.znode("ConfigEntityZNode").encode(properties))


@given(
    leader=st.integers(-1, 9),
    epochs=st.tuples(IDS, IDS),
    isr=st.lists(IDS, max_size=4),
    recovering=st.booleans(),
)
@FEW
def test_partition_state_znodes_equal_those_of_kafka(
    scala: Scala, leader: int, epochs: tuple[int, int], isr: list[int], recovering: bool
) -> None:
    recovery = scala.jvm.org.apache.kafka.metadata.LeaderRecoveryState
    member = getattr(scala.jvm.org.apache.kafka.common.message, "AlterPartitionRequestData$BrokerState")
    state = scala.jvm.kafka.api.LeaderAndIsr(
        leader,
        epochs[0],
        recovery.RECOVERING if recovering else recovery.RECOVERED,
        scala.list([member().setBrokerId(broker) for broker in isr]),
        0,
    )
    theirs = scala.jvm.kafka.controller.LeaderIsrAndControllerEpoch(state, epochs[1])
    ours = PartitionStateZNode(
        leader=leader,
        leader_epoch=epochs[0],
        isr=tuple(isr),
        controller_epoch=epochs[1],
        leader_recovery_state=int(recovering),
    )
    assert ours.encode() == bytes(scala.znode("TopicPartitionStateZNode").encode(theirs))


@given(topic=TEXTS, partition=IDS, replicas=st.lists(IDS, max_size=4))
@FEW
def test_reassignment_znode_equals_that_of_kafka(
    scala: Scala, topic: str, partition: int, replicas: list[int]
) -> None:
    moved = scala.jvm.org.apache.kafka.common.TopicPartition(topic, partition)
    theirs = scala.converters.asScala({moved: scala.list(replicas)})
    ours = ReassignPartitions({TopicPartition(topic, partition): tuple(replicas)})
    assert ours.encode() == bytes(scala.znode("ReassignPartitionsZNode").encode(theirs))


@given(broker=IDS, entity=TEXTS)
@FEW
def test_notification_znodes_equal_those_of_kafka(scala: Scala, broker: int, entity: str) -> None:
    event = scala.znode("LogDirEventNotificationSequenceZNode").encode(broker)
    assert LogDirEvent(broker).encode() == bytes(event)
    change = scala.znode("ConfigEntityChangeNotificationSequenceZNode").encode(entity)
    assert ConfigChange(entity).encode() == bytes(change)
