"""Sessions of four clients: create, write, read in groups, configure, describe, fail, delete."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioTopic
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as KafkaTopic
from kafka.errors import KafkaError

from tests.clients.consumers import LONG_POLL_MS

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

WAIT_S = 180
RECORDS = 40


def with_kafka_python(bootstrap: str) -> None:
    topic = "kafka-python"
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([KafkaTopic(topic, num_partitions=3, replication_factor=3)])
        with pytest.raises(KafkaError):
            admin.create_topics([KafkaTopic(topic, num_partitions=1, replication_factor=1)])
        admin.describe_cluster()
        admin.describe_topics([topic])
        admin.list_topics()
        for acks in (0, 1, "all"):
            with closing(KafkaProducer(bootstrap_servers=bootstrap, acks=acks)) as producer:
                for number in range(RECORDS):
                    producer.send(topic, b"%d" % number, partition=number % 3)
                producer.flush(WAIT_S)
        consumer = KafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id="python", auto_offset_reset="earliest"
        )
        with closing(consumer):
            found = 0
            while found < 2 * RECORDS:
                found += sum(map(len, consumer.poll(LONG_POLL_MS).values()))
            consumer.commit()
            place = TopicPartition(topic, 0)
            consumer.beginning_offsets([place])
            consumer.end_offsets([place])
            consumer.offsets_for_times({place: 1})
        admin.list_groups()
        admin.describe_groups(["python"])
        admin.delete_topics([topic])


def with_confluent(bootstrap: str) -> None:
    topic = "confluent"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 3)])[topic].result(WAIT_S)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WAIT_S)
    with pytest.raises(KafkaException):
        admin.create_partitions([NewPartitions(topic, 1)])[topic].result(WAIT_S)
    for compression in ("none", "gzip", "zstd"):
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "compression.type": compression}
        )
        for number in range(RECORDS):
            producer.produce(topic, b"%d" % number, partition=number % 2)
        assert producer.flush(WAIT_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "confluent",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # otherwise there may be nothing left to commit
        }
    )
    consumer.subscribe([topic])
    read = 0
    while read < 3 * RECORDS:
        read += sum(message.error() is None for message in consumer.consume(RECORDS, 1))
    consumer.commit(asynchronous=False)
    places = [Place(topic, 0)]
    consumer.committed(places, timeout=WAIT_S)
    consumer.offsets_for_times([Place(topic, 0, 1)], timeout=WAIT_S)
    consumer.close()
    for kind, name in (("topic", topic), ("broker", "1")):
        resource = ConfigResource(ConfigResource.Type[kind.upper()], name)
        admin.describe_configs([resource])[resource].result(WAIT_S)
    entry = ConfigEntry("retention.ms", "5000", incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([change])[change].result(WAIT_S)
    admin.list_offsets({Place(topic, 0): OffsetSpec.latest()})[Place(topic, 0)].result(WAIT_S)
    admin.delete_records([Place(topic, 0, 5)])[Place(topic, 0)].result(WAIT_S)
    admin.list_consumer_groups().result(WAIT_S)
    admin.describe_consumer_groups(["confluent", "nobody"])["confluent"].result(WAIT_S)
    admin.describe_cluster().result(WAIT_S)
    admin.delete_consumer_groups(["confluent"])["confluent"].result(WAIT_S)
    admin.delete_topics([topic])[topic].result(WAIT_S)


def with_aiokafka(bootstrap: str) -> None:
    async def session() -> None:
        topic = "aiokafka"
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([AioTopic(topic, num_partitions=2, replication_factor=3)])
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True) as producer:
            for number in range(RECORDS):
                await producer.send_and_wait(topic, b"%d" % number, partition=number % 2)
        async with AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id="aio",
            auto_offset_reset="earliest",
            session_timeout_ms=60_000,
        ) as consumer:
            found = 0
            while found < RECORDS:
                found += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
            await consumer.commit()
        await admin.list_consumer_groups()
        await admin.describe_consumer_groups(["aio"])
        await admin.delete_topics([topic])
        await admin.close()

    asyncio.run(asyncio.wait_for(session(), WAIT_S))


def with_java(gateway: JavaGateway, bootstrap: str) -> None:
    """Run Kafka's admin, producer and consumer in the JVM of the tests."""
    jvm = gateway.jvm
    clients = jvm.org.apache.kafka.clients
    common = jvm.org.apache.kafka.common
    topic = "java"
    properties = _properties(jvm, bootstrap)
    admin = clients.admin.AdminClient.create(properties)
    try:
        _wait(jvm, admin.createTopics([clients.admin.NewTopic(topic, 3, 2)]).all())
        _java_writes_and_reads(jvm, properties, topic)
        _wait(jvm, admin.describeTopics([topic]).allTopicNames())
        _wait(jvm, admin.describeCluster().nodes())
        _wait(jvm, admin.listTopics().names())
        _wait(jvm, admin.listConsumerGroups().all())
        _wait(jvm, admin.describeConsumerGroups(["java"]).all())
        _wait(jvm, admin.listConsumerGroupOffsets("java").partitionsToOffsetAndMetadata())
        config = common.config
        resource = config.ConfigResource(getattr(config, "ConfigResource$Type").TOPIC, topic)
        _wait(jvm, admin.describeConfigs([resource]).all())
        operation = clients.admin.AlterConfigOp(
            clients.admin.ConfigEntry("segment.ms", "7000"),
            getattr(clients.admin, "AlterConfigOp$OpType").SET,
        )
        _wait(jvm, admin.incrementalAlterConfigs({resource: [operation]}).all())
        partition = common.TopicPartition(topic, 0)
        _wait(jvm, admin.listOffsets({partition: clients.admin.OffsetSpec.maxTimestamp()}).all())
        _wait(jvm, admin.describeLogDirs([jvm.java.lang.Integer(1)]).allDescriptions())
        more = clients.admin.NewPartitions.increaseTo(4)
        _wait(jvm, admin.createPartitions({topic: more}).all())
        _wait(jvm, admin.deleteConsumerGroups(["java"]).all())
        _wait(jvm, admin.deleteTopics([topic]).all())
    finally:
        admin.close()


def _java_writes_and_reads(jvm: Any, properties: JavaObject, topic: str) -> None:
    clients = jvm.org.apache.kafka.clients
    producer = clients.producer.KafkaProducer(properties)
    try:
        for number in range(RECORDS):
            producer.send(clients.producer.ProducerRecord(topic, "key", f"{number}"))
        producer.flush()
    finally:
        producer.close()
    consumer = clients.consumer.KafkaConsumer(properties)
    try:
        consumer.subscribe([topic])
        found = 0
        while found < RECORDS:
            found += consumer.poll(jvm.java.time.Duration.ofSeconds(1)).count()
        consumer.commitSync()
    finally:
        consumer.close()


def _properties(jvm: Any, bootstrap: str) -> JavaObject:
    properties = jvm.java.util.Properties()
    text = "org.apache.kafka.common.serialization.String"
    for name, value in {
        "bootstrap.servers": bootstrap,
        "group.id": "java",
        "auto.offset.reset": "earliest",
        "key.serializer": f"{text}Serializer",
        "value.serializer": f"{text}Serializer",
        "key.deserializer": f"{text}Deserializer",
        "value.deserializer": f"{text}Deserializer",
    }.items():
        properties.put(name, value)
    return properties


def _wait(jvm: Any, future: JavaObject) -> JavaObject:
    return future.get(WAIT_S, jvm.java.util.concurrent.TimeUnit.SECONDS)
