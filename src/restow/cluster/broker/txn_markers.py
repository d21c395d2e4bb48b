"""End markers of transactions: written into partitions that this broker leads, sent to other leaders."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from restow.cluster.broker.metadata import GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from restow.model import TopicPartition, by_topic
from restow.wire.end_markers import EndMarker, build_end_marker
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import WriteTxnMarkersRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.groups import GroupCoordinator
    from restow.cluster.net.peers import Peers
    from restow.cluster.replication import ReplicaManager
    from restow.cluster.transactions import EndOfTransaction
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)

_ALL_IN_SYNC = -1
_WRITE_MS = 30_000
_VERSION = 1
_Marker = WriteTxnMarkersRequest.WritableTxnMarker


class MarkerWriter:
    """Ends transactions in the partitions of this broker."""

    def __init__(self, replicas: ReplicaManager, groups: GroupCoordinator, clock: Clock) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock

    async def write(
        self, end: EndOfTransaction, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Append a marker to each partition, and wait until all in-sync replicas have it."""
        marker = EndMarker(end.commits, end.coordinator_epoch)
        batch = build_end_marker(end.producer_id, end.producer_epoch, marker, self._clock.now_ms())
        results = await self._replicas.append(
            dict.fromkeys(partitions, batch), acks=_ALL_IN_SYNC, timeout_ms=_WRITE_MS, from_client=False
        )
        codes = {each: ErrorCode.of(result.error_code) for each, result in results.items()}
        for partition, code in codes.items():
            if partition.topic == GROUP_OFFSETS_TOPIC and code is ErrorCode.NONE:
                self._groups.end_transaction(partition.partition, end.producer_id, commits=end.commits)
        return codes


class LeaderMarkers:
    """Sends markers to the leaders of partitions, this broker included."""

    def __init__(self, broker_id: int, metadata: MetadataCache, writer: MarkerWriter, peers: Peers) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._writer = writer
        self._peers = peers

    async def send(
        self, end: EndOfTransaction, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return an error code for each partition; NONE also for one that no longer exists."""
        codes: dict[TopicPartition, ErrorCode] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            known = self._metadata.partition(partition)
            if known is not None:
                by_leader.setdefault(known.leader_id, []).append(partition)
            elif self._metadata.partition_count(TRANSACTION_STATE_TOPIC):
                log.info("no marker for %s, which does not exist any more", partition)
                codes[partition] = ErrorCode.NONE
            else:
                codes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION  # no metadata has come yet
        answers = await asyncio.gather(
            *(self._send_to(leader, end, led) for leader, led in sorted(by_leader.items()))
        )
        for answer in answers:
            codes |= answer
        return codes

    async def _send_to(
        self, leader: int, end: EndOfTransaction, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        if leader == self._broker_id:
            return await self._writer.write(end, partitions)
        if leader not in self._metadata.brokers:
            return dict.fromkeys(partitions, ErrorCode.LEADER_NOT_AVAILABLE)
        marker = _Marker(
            producer_id=end.producer_id,
            producer_epoch=end.producer_epoch,
            transaction_result=end.commits,
            topics=[
                _Marker.WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(sorted(partitions)).items()
            ],
            coordinator_epoch=end.coordinator_epoch,
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        try:
            answer = await self._peers.call(leader, request.API_KEY, _VERSION, request)
        except OSError as error:
            log.info("broker %d gave no answer about markers: %s", leader, error)
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        return {
            TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.error_code)
            for marked in answer.markers
            for topic in marked.topics
            for each in topic.partitions
        }
