"""Kafka's znodes: round trips, older versions, and refusal of invalid bytes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.store import UnreadableNode
from restow.cluster.store.znodes import (
    AdvertisedEndpoint,
    BrokerRegistration,
    ClusterId,
    ConfigChange,
    ControllerEpoch,
    ControllerZNode,
    EntityConfig,
    FeatureState,
    IsrChangeNotification,
    LogDirEvent,
    PartitionStateZNode,
    PreferredReplicaElection,
    ProducerIdBlock,
    ReassignPartitions,
    TopicZNode,
)
from restow.model import ReplicaAssignment, TopicPartition

PATH = "/some/node"
INTS = st.integers(-(2**31), 2**31 - 1)
IDS = st.integers(0, 2**31 - 1)
LONGS = st.integers(0, 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)
REPLICAS = st.lists(IDS, max_size=4).map(tuple)
PARTITIONS = st.builds(TopicPartition, NAMES, IDS)
TOPIC_IDS = st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True)
ENDPOINTS = st.builds(
    AdvertisedEndpoint,
    st.from_regex(r"[A-Z_]{1,9}", fullmatch=True),
    st.sampled_from(["localhost", "", "10.0.0.1", "::1", "fe80::1%eth0", "kafka-1.example"]),
    st.integers(0, 65535),
    st.sampled_from(["PLAINTEXT", "SSL", "SASL_SSL"]),
)
ZNODES: dict[str, st.SearchStrategy[Any]] = {
    "controller": st.builds(ControllerZNode, broker_id=INTS, timestamp_ms=LONGS, kraft_controller_epoch=INTS),
    "controller_epoch": st.builds(ControllerEpoch, IDS),
    "broker": st.builds(
        BrokerRegistration,
        endpoints=st.lists(ENDPOINTS, unique_by=lambda each: each.name, max_size=3).map(tuple),
        timestamp_ms=LONGS,
        rack=st.none() | TEXTS,
        jmx_port=INTS,
        features=st.dictionaries(
            TEXTS, st.dictionaries(st.sampled_from(["min_version", "max_version"]), INTS)
        ),
    ),
    "cluster_id": st.builds(ClusterId, TEXTS),
    "feature": st.builds(FeatureState, status=INTS, features=st.dictionaries(TEXTS, INTS)),
    "producer_ids": st.builds(ProducerIdBlock, broker_id=INTS, first=LONGS, last=LONGS),
    "topic": st.builds(
        TopicZNode,
        topic_id=st.none() | TOPIC_IDS,
        partitions=st.dictionaries(IDS, st.builds(ReplicaAssignment, REPLICAS, REPLICAS, REPLICAS)),
    ),
    "state": st.builds(
        PartitionStateZNode,
        leader=INTS,
        leader_epoch=INTS,
        isr=REPLICAS,
        controller_epoch=INTS,
        leader_recovery_state=st.integers(0, 1),
    ),
    "reassign": st.builds(ReassignPartitions, st.dictionaries(PARTITIONS, REPLICAS)),
    "election": st.builds(PreferredReplicaElection, st.lists(PARTITIONS).map(tuple)),
    "isr_change": st.builds(IsrChangeNotification, st.lists(PARTITIONS).map(tuple)),
    "log_dir": st.builds(LogDirEvent, INTS),
    "config_change": st.builds(ConfigChange, st.builds("{}/{}".format, NAMES, NAMES)),
    "config": st.builds(EntityConfig, st.dictionaries(TEXTS, TEXTS)),
}
EXAMPLES: list[tuple[Any, bytes]] = [
    (
        ControllerZNode(broker_id=1, timestamp_ms=1794720468441),
        b'{"version":2,"brokerid":1,"timestamp":"1794720468441","kraftControllerEpoch":-1}',
    ),
    (ControllerEpoch(7), b"7"),
    (
        BrokerRegistration(
            endpoints=(AdvertisedEndpoint("PLAINTEXT", "127.0.0.1", 9092),), timestamp_ms=5, rack="r\u00e4ck"
        ),
        (
            b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
            b'"endpoints":["PLAINTEXT://127.0.0.1:9092"],"rack":"r\xc3\xa4ck","jmx_port":-1,"port":9092,'
            b'"host":"127.0.0.1","version":5,"timestamp":"5"}'
        ),
    ),
    (ClusterId("vAqf2sBJSzuMb8DCYud7Tw"), b'{"version":"1","id":"vAqf2sBJSzuMb8DCYud7Tw"}'),
    (FeatureState(), b'{"features":{},"version":2,"status":1}'),
    (
        ProducerIdBlock(broker_id=1, first=0, last=999),
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
    ),
    (
        TopicZNode(
            topic_id="DZvYdF5HTeKytaMzvfgdEQ",
            partitions={1: ReplicaAssignment((3, 4, 1), (3, 4), (1,)), 0: ReplicaAssignment((1, 2))},
        ),
        (
            b'{"partitions":{"1":[3,4,1],"0":[1,2]},"topic_id":"DZvYdF5HTeKytaMzvfgdEQ",'
            b'"adding_replicas":{"1":[3,4]},"removing_replicas":{"1":[1]},"version":3}'
        ),
    ),
    (
        PartitionStateZNode(leader=1, leader_epoch=2, isr=(1, 2), controller_epoch=7),
        b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":2,"isr":[1,2]}',
    ),
    (
        ReassignPartitions({TopicPartition("t", 0): (2, 1)}),
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}',
    ),
    (
        PreferredReplicaElection((TopicPartition("t", 1),)),
        b'{"version":1,"partitions":[{"topic":"t","partition":1}]}',
    ),
    (LogDirEvent(3), b'{"version":1,"broker":3,"event":1}'),
    (ConfigChange("topics/t"), b'{"version":2,"entity_path":"topics/t"}'),
    (
        EntityConfig({"a": 'x\x1f\x7f/"\\u001f\n'}),
        b'{"version":1,"config":{"a":"x\\u001F\x7f/\\"\\\\u001f\\n"}}',
    ),
]


@pytest.mark.parametrize(("value", "data"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_encode_writes_the_bytes_of_kafka(value: Any, data: bytes) -> None:
    assert value.encode() == data
    assert type(value).decode(data, PATH) == value


@pytest.mark.parametrize("kind", ZNODES)
@given(data=st.data())
def test_decode_reads_back_encoded_values(kind: str, data: st.DataObject) -> None:
    value = data.draw(ZNODES[kind])
    written = value.encode()
    again = type(value).decode(written, PATH)
    assert again == value
    assert again.encode() == written


@pytest.mark.parametrize("kind", ZNODES)
@given(data=st.data())
def test_decode_raises_only_unreadable_node_for_damaged_bytes(kind: str, data: st.DataObject) -> None:
    value = data.draw(ZNODES[kind])
    written = bytearray(value.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(written)))
        written[position : position + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    with suppress(UnreadableNode):
        type(value).decode(bytes(written), PATH)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("version"), inner, max_size=3)
    ),
)


@pytest.mark.parametrize("kind", [kind for kind in ZNODES if kind != "controller_epoch"])
@given(data=st.data())
def test_decode_raises_only_unreadable_node_for_fields_of_wrong_type(kind: str, data: st.DataObject) -> None:
    value = data.draw(ZNODES[kind])
    fields = json.loads(value.encode())
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JSON)
    with suppress(UnreadableNode):
        type(value).decode(json.dumps(fields).encode(), PATH)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        (b'{"version":NaN}', "not JSON"),
        (b"[1]", "should be an object"),
        (b"{}", "has no version"),
        (b'{"version":4,"partitions":{}}', "version 4"),
        (b'{"version":true,"partitions":{}}', "version True"),
        (b'{"version":3,"partitions":{"x":[1]}}', "'x' is not a partition"),
        (b'{"version":3,"partitions":{"-1":[1]}}', "'-1' is not a partition"),
        (b'{"version":3,"partitions":{"9999999999":[1]}}', "is not a partition"),
        (b'{"version":3,"partitions":{"0":[1.5]}}', "whole number"),
        (b'{"version":3,"partitions":{"0":[true]}}', "whole number"),
        (b'{"version":3,"partitions":{"0":[2147483648]}}', "whole number"),
        (b'{"version":3,"partitions":{"0":1}}', "should be a list"),
        (b'{"version":3,"topic_id":"short","partitions":{}}', "not the id of a topic"),
    ],
)
def test_decode_refuses_invalid_topic_with_reason(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableNode, match=reason) as caught:
        TopicZNode.decode(data, "/brokers/topics/t")
    assert caught.value.path == "/brokers/topics/t"


def test_decode_reads_older_topic_versions() -> None:
    first = TopicZNode.decode(b'{"version":1,"partitions":{"0":[1,2]}}', PATH)
    assert first == TopicZNode(topic_id=None, partitions={0: ReplicaAssignment((1, 2))})
    second = TopicZNode.decode(
        b'{"version":2,"partitions":{"0":[3,1]},"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]}}',
        PATH,
    )
    assert second == TopicZNode(topic_id=None, partitions={0: ReplicaAssignment((3, 1), (3,), (1,))})
    assert b"topic_id" not in second.encode()


@pytest.mark.parametrize(
    ("data", "endpoints", "rack"),
    [
        (
            b'{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"2233345666"}',
            (AdvertisedEndpoint("PLAINTEXT", "h", 9092),),
            None,
        ),
        (
            b'{"version":2,"host":"h","port":1,"jmx_port":-1,"endpoints":["PLAINTEXT://h:1","SSL://h:2"]}',
            (AdvertisedEndpoint("PLAINTEXT", "h", 1), AdvertisedEndpoint("SSL", "h", 2, "SSL")),
            None,
        ),
        (
            (
                b'{"version":4,"host":null,"port":-1,"endpoints":["CLIENT://[::1]:1"],"rack":"r",'
                b'"listener_security_protocol_map":{"CLIENT":"SSL"}}'
            ),
            (AdvertisedEndpoint("CLIENT", "::1", 1, "SSL"),),
            "r",
        ),
    ],
)
def test_decode_reads_older_broker_versions(
    data: bytes, endpoints: tuple[AdvertisedEndpoint, ...], rack: str | None
) -> None:
    found = BrokerRegistration.decode(data, PATH)
    assert (found.endpoints, found.rack) == (endpoints, rack)


def test_decode_reads_other_older_versions() -> None:
    assert ControllerZNode.decode(b'{"version":1,"brokerid":3,"timestamp":"12"}').broker_id == 3
    change = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert ConfigChange.decode(change, PATH) == ConfigChange("topics/t")
    assert EntityConfig.decode(b"", PATH) == EntityConfig({})
    feature = b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":3}}}'
    assert FeatureState.decode(feature).features == {"f": 3}


def test_paths_are_those_of_kafka() -> None:
    assert TopicZNode.path("t") == "/brokers/topics/t"
    assert PartitionStateZNode.path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert PartitionStateZNode.parents("t", 3) == (
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/3",
    )
    assert BrokerRegistration.path(3) == "/brokers/ids/3"
    assert EntityConfig.broker_path(None) == "/config/brokers/<default>"
    assert EntityConfig.topic_path("t") == "/config/topics/t"
