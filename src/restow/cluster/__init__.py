"""The embedded cluster: brokers that speak Kafka's protocol, in this process.

with restow.cluster.ThreadedCluster(brokers=3) as kafka:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
"""

from typing import TYPE_CHECKING

from restow._stages import late

if TYPE_CHECKING:
    from restow.cluster.embedded import EmbeddedCluster
    from restow.cluster.faults.faults import ClusterFaults
    from restow.cluster.faults.handle import ClusterFault
    from restow.cluster.faults.threaded import ThreadedFault, ThreadedFaults
    from restow.cluster.threaded import ThreadedCluster
    from restow.wire.error_codes import ErrorCode

__all__ = [
    "ClusterFault",
    "ClusterFaults",
    "EmbeddedCluster",
    "ErrorCode",
    "ThreadedCluster",
    "ThreadedFault",
    "ThreadedFaults",
]

if not TYPE_CHECKING:  # a broker in a process of its own needs neither
    __getattr__ = late(
        __name__,
        {
            "ClusterFault": "restow.cluster.faults.handle",
            "ClusterFaults": "restow.cluster.faults.faults",
            "EmbeddedCluster": "restow.cluster.embedded",
            "ErrorCode": "restow.wire.error_codes",
            "ThreadedCluster": "restow.cluster.threaded",
            "ThreadedFault": "restow.cluster.faults.threaded",
            "ThreadedFaults": "restow.cluster.faults.threaded",
        },
    )
