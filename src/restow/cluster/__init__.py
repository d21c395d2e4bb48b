"""The embedded cluster: brokers that speak Kafka's protocol, in this process.

with restow.cluster.ThreadedCluster(brokers=3) as kafka:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
"""

from typing import TYPE_CHECKING

from restow._stages import late

if TYPE_CHECKING:
    from restow.cluster.embedded import EmbeddedCluster
    from restow.cluster.threaded import ThreadedCluster

__all__ = ["EmbeddedCluster", "ThreadedCluster"]

if not TYPE_CHECKING:  # a broker in a process of its own needs neither
    __getattr__ = late(
        __name__,
        {"EmbeddedCluster": "restow.cluster.embedded", "ThreadedCluster": "restow.cluster.threaded"},
    )
