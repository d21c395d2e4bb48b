"""The content of Kafka's znodes: one class per kind of node, with its path, `encode` and `decode`.

    cluster.py        /controller, /controller_epoch, /brokers/ids/*, /cluster/id, /feature,
                      /latest_producer_id_block
    topics.py         /brokers/topics/*, /brokers/topics/*/partitions/*/state
    requests.py       /admin/reassign_partitions, /admin/preferred_replica_election, /admin/delete_topics/*
    notifications.py  /isr_change_notification/*, /log_dir_event_notification/*, /config/changes/*
    configs.py        /config/topics/*, /config/brokers/*, /config/users/*
    acls.py           /kafka-acl/*/*, /kafka-acl-extended/prefixed/*/*, and the notes of their changes

Paths, fields and their order are those of Kafka 3.9, byte for byte. `decode` raises UnreadableNode for
anything else: not UTF-8, not JSON, an unknown version, a field missing or of the wrong type.
"""

from restow.cluster.store.znodes.acls import AclChange, AclZNode
from restow.cluster.store.znodes.cluster import (
    AdvertisedEndpoint,
    BrokerRegistration,
    ClusterId,
    ControllerEpoch,
    ControllerZNode,
    FeatureState,
    ProducerIdBlock,
)
from restow.cluster.store.znodes.configs import EntityConfig
from restow.cluster.store.znodes.notifications import ConfigChange, IsrChangeNotification, LogDirEvent
from restow.cluster.store.znodes.requests import DeleteTopic, PreferredReplicaElection, ReassignPartitions
from restow.cluster.store.znodes.topics import PartitionStateZNode, TopicZNode

PERSISTENT_PATHS = (
    "/consumers",
    BrokerRegistration.PARENT,
    TopicZNode.PARENT,
    ConfigChange.PARENT,
    DeleteTopic.PARENT,
    "/brokers/seqid",
    IsrChangeNotification.PARENT,
    ProducerIdBlock.PATH,
    LogDirEvent.PARENT,
    EntityConfig.TOPICS,
    "/config/clients",
    "/config/users",
    EntityConfig.BROKERS,
    "/config/ips",
)
"""Empty nodes that a Kafka 3.9 broker creates before anything else."""

__all__ = [
    "PERSISTENT_PATHS",
    "AclChange",
    "AclZNode",
    "AdvertisedEndpoint",
    "BrokerRegistration",
    "ClusterId",
    "ConfigChange",
    "ControllerEpoch",
    "ControllerZNode",
    "DeleteTopic",
    "EntityConfig",
    "FeatureState",
    "IsrChangeNotification",
    "LogDirEvent",
    "PartitionStateZNode",
    "PreferredReplicaElection",
    "ProducerIdBlock",
    "ReassignPartitions",
    "TopicZNode",
]
