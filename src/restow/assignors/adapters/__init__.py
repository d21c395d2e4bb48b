"""Restow's assignors as drop-ins for Python's Kafka clients.

    from restow.assignors.adapters.kafka_python import Sticky
    KafkaConsumer("t", group_id="g", partition_assignment_strategy=[Sticky])

    from restow.assignors.adapters.aiokafka import Sticky
    AIOKafkaConsumer("t", group_id="g", partition_assignment_strategy=[Sticky()])

The names on the wire are Kafka's, so consumers of both clients and of Java's may share a group. Each
module needs its client installed; this package imports neither.
"""
