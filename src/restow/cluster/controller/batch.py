"""Requests to brokers, gathered per broker and then sent together.

Each broker gets LeaderAndIsr first, then UpdateMetadata, then StopReplica. A new leader concerns the metadata
of every broker, so `leader_and_isr` adds the partition to every live broker's UpdateMetadata.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from restow.wire.between_brokers import (
    EVERYTHING,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from restow.wire.making import maker_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.controller.context import ControllerContext, Leadership
    from restow.cluster.controller.outbox import Message, Outbox
    from restow.model import TopicPartition

LEADER_DURING_DELETE = -2
EPOCH_DURING_DELETE = -2
_NO_ID = UUID(int=0)
_SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

_lead_state = maker_of(LeaderAndIsrRequest.LeaderAndIsrPartitionState)
_update_state = maker_of(UpdateMetadataRequest.UpdateMetadataPartitionState)
_live_broker = maker_of(UpdateMetadataRequest.UpdateMetadataBroker)
_live_endpoint = maker_of(UpdateMetadataRequest.UpdateMetadataBroker.UpdateMetadataEndpoint)


class _Lead(NamedTuple):
    leadership: Leadership
    is_new: bool


class BrokerRequestBatch:
    """Requests gathered for one send. The last state given for a partition wins."""

    def __init__(self, context: ControllerContext, outbox: Outbox) -> None:
        self._context = context
        self._outbox = outbox
        self._lead: defaultdict[int, dict[TopicPartition, _Lead]] = defaultdict(dict)
        self._stop: defaultdict[int, dict[TopicPartition, bool]] = defaultdict(dict)
        self._update: dict[TopicPartition, None] = {}
        self._update_everybody = False

    def leader_and_isr(
        self,
        brokers: Iterable[int],
        partition: TopicPartition,
        leadership: Leadership,
        *,
        is_new: bool = False,
    ) -> None:
        """Send these brokers the leader and ISR, and every live broker the new metadata."""
        for broker_id in brokers:
            earlier = self._lead[broker_id].get(partition)
            new = is_new or (earlier is not None and earlier.is_new)
            self._lead[broker_id][partition] = _Lead(leadership, new)
        self.update_metadata((partition,))

    def stop_replica(self, brokers: Iterable[int], partition: TopicPartition, *, delete: bool) -> None:
        """Send StopReplica to these brokers. A replica marked for deletion stays marked."""
        for broker_id in brokers:
            self._stop[broker_id][partition] = delete or self._stop[broker_id].get(partition, False)

    def update_metadata(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Send every live broker the metadata of these partitions, and in any case the live brokers."""
        self._update.update(dict.fromkeys(partitions))
        self._update_everybody = True

    def send(self) -> None:
        """Put the gathered requests into the outbox. Dead brokers get none."""
        context = self._context
        update = self._update_states(self._update) if self._update_everybody else None
        live = self._live_brokers()
        for broker_id in context.brokers:
            if lead := self._lead.get(broker_id):
                self._outbox.put(broker_id, self._leader_and_isr_request(broker_id, lead))
            if update is not None:
                self._outbox.put(broker_id, self._update_request(broker_id, update, live))
            if stop := self._stop.get(broker_id):
                self._outbox.put(broker_id, self._stop_replica_request(broker_id, stop))

    def send_everything(self, brokers: Iterable[int]) -> None:
        """Send these brokers every partition that has a leader or had one, and say that it is everything.

        A broker that has not heard of a deletion, because the controller of that time died meanwhile, would
        tell clients of the topic for ever.
        """
        update = self._update_states(self._context.leaderships)
        live = self._live_brokers()
        for broker_id in brokers:
            request = self._update_request(broker_id, update, live)
            request.request_type = EVERYTHING
            self._outbox.put(broker_id, request)

    # The requests

    def _leader_and_isr_request(self, broker_id: int, lead: dict[TopicPartition, _Lead]) -> Message:
        by_topic: defaultdict[str, list[Message]] = defaultdict(list)
        leaders: dict[int, None] = {}
        for partition, (leadership, is_new) in lead.items():
            assignment = self._context.assignments[partition]
            leaders[leadership.leader] = None
            by_topic[partition.topic].append(
                _lead_state(
                    topic_name=partition.topic,
                    partition_index=partition.partition,
                    controller_epoch=leadership.controller_epoch,
                    leader=leadership.leader,
                    leader_epoch=leadership.leader_epoch,
                    isr=list(leadership.isr),
                    partition_epoch=leadership.version,
                    replicas=list(assignment.replicas),
                    adding_replicas=list(assignment.adding),
                    removing_replicas=list(assignment.removing),
                    is_new=is_new,
                    leader_recovery_state=leadership.recovery,
                )
            )
        return LeaderAndIsrRequest(
            controller_id=self._context.broker_id,
            controller_epoch=self._context.epoch,
            broker_epoch=self._context.brokers[broker_id].epoch,
            request_type=0,
            topic_states=[
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic, topic_id=self._wire_id(topic), partition_states=states
                )
                for topic, states in by_topic.items()
            ],
            live_leaders=self._live_leaders(leaders),
        )

    def _live_leaders(self, leaders: Iterable[int]) -> list[Message]:
        make = LeaderAndIsrRequest.LeaderAndIsrLiveLeader
        found = []
        for broker_id in leaders:
            broker = self._context.brokers.get(broker_id)
            if broker is not None and broker.registration.endpoints:
                endpoint = broker.registration.endpoints[0]
                found.append(make(broker_id=broker_id, host_name=endpoint.host, port=endpoint.port))
        return found

    def _stop_replica_request(self, broker_id: int, stop: dict[TopicPartition, bool]) -> Message:
        make = StopReplicaRequest.StopReplicaTopicState.StopReplicaPartitionState
        by_topic: defaultdict[str, list[Message]] = defaultdict(list)
        for partition, delete in stop.items():
            by_topic[partition.topic].append(
                make(
                    partition_index=partition.partition,
                    leader_epoch=self._stop_epoch(partition),
                    delete_partition=delete,
                )
            )
        return StopReplicaRequest(
            controller_id=self._context.broker_id,
            controller_epoch=self._context.epoch,
            broker_epoch=self._context.brokers[broker_id].epoch,
            topic_states=[
                StopReplicaRequest.StopReplicaTopicState(topic_name=topic, partition_states=states)
                for topic, states in by_topic.items()
            ],
        )

    def _stop_epoch(self, partition: TopicPartition) -> int:
        if self._context.is_deleting(partition):
            return EPOCH_DURING_DELETE
        leadership = self._context.leaderships.get(partition)
        return -1 if leadership is None else leadership.leader_epoch

    def _update_request(
        self, broker_id: int, topic_states: list[Message], live_brokers: list[Message]
    ) -> Message:
        return UpdateMetadataRequest(
            controller_id=self._context.broker_id,
            controller_epoch=self._context.epoch,
            broker_epoch=self._context.brokers[broker_id].epoch,
            topic_states=topic_states,
            live_brokers=live_brokers,
        )

    def _update_states(self, partitions: Iterable[TopicPartition]) -> list[Message]:
        context = self._context
        by_topic: defaultdict[str, list[Message]] = defaultdict(list)
        for partition in partitions:
            leadership = context.leaderships.get(partition)
            if leadership is None:
                continue
            replicas = context.assignments[partition].replicas
            online = context.online(partition, or_leaving=True)
            leader = LEADER_DURING_DELETE if context.is_deleting(partition) else leadership.leader
            by_topic[partition.topic].append(
                _update_state(
                    topic_name=partition.topic,
                    partition_index=partition.partition,
                    controller_epoch=leadership.controller_epoch,
                    leader=leader,
                    leader_epoch=leadership.leader_epoch,
                    isr=list(leadership.isr),
                    zk_version=leadership.version,
                    replicas=list(replicas),
                    offline_replicas=[each for each in replicas if each not in online],
                )
            )
        return [
            UpdateMetadataRequest.UpdateMetadataTopicState(
                topic_name=topic, topic_id=self._wire_id(topic), partition_states=states
            )
            for topic, states in by_topic.items()
        ]

    def _live_brokers(self) -> list[Message]:
        return [
            _live_broker(
                id=broker.id,
                rack=broker.registration.rack,
                endpoints=[
                    _live_endpoint(
                        port=each.port,
                        host=each.host,
                        listener=each.name,
                        security_protocol=_SECURITY_PROTOCOLS.get(each.protocol, 0),
                    )
                    for each in broker.registration.endpoints
                ],
            )
            for broker in self._context.brokers.values()
        ]

    def _wire_id(self, topic: str) -> UUID:
        topic_id = self._context.topic_ids.get(topic)
        return _NO_ID if topic_id is None else UUID(bytes=urlsafe_b64decode(topic_id + "=="))
