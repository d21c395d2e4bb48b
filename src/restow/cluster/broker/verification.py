"""Asks the coordinator whether a producer may begin a transaction in a partition (KIP-890).

Without that, a batch that arrives after its transaction was aborted would begin one that nobody ends, and
readers of committed records would wait for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.broker.metadata import TRANSACTION_STATE_TOPIC
from restow.cluster.groups import partition_of_group
from restow.cluster.transactions import ProducerIdAndEpoch
from restow.model import TopicPartition, by_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AddPartitionsToTxnRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.log.producers import Verification
    from restow.cluster.net.peers import Peers
    from restow.cluster.replication import ReplicaManager
    from restow.cluster.transactions import TransactionCoordinator
    from restow.wire.batches import BatchHeader

_VERSION = 4
_Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
_COME_AGAIN = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_COORDINATOR,
    }
)
_NOT_PART_OF_IT = (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE)


class Verified(NamedTuple):
    """Verifications of partitions whose batch begins a transaction, and errors of those that may not."""

    verifications: Mapping[TopicPartition, Verification]
    errors: Mapping[TopicPartition, ErrorCode]


class Verifier:
    """Verifies transactional batches before they are appended."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        replicas: ReplicaManager,
        coordinator: TransactionCoordinator,
        peers: Peers,
        is_enabled: Callable[[], bool],
    ) -> None:
        """`is_enabled` returns transaction.partition.verification.enable."""
        self._broker_id = broker_id
        self._metadata = metadata
        self._replicas = replicas
        self._coordinator = coordinator
        self._peers = peers
        self._is_enabled = is_enabled

    async def verify(
        self,
        transactional_id: str,
        headers: Mapping[TopicPartition, BatchHeader],
        *,
        knows_abortable: bool,
        retriable: ErrorCode,
    ) -> Verified:
        """Ask about the batches that do not continue an open transaction. All have the same producer.

        `knows_abortable`: the client's version of the request has TRANSACTION_ABORTABLE. `retriable` is the
        error that makes it try again.
        """
        verifications: dict[TopicPartition, Verification] = {}
        for partition, header in headers.items():
            found = self._replicas.find(partition)
            if not isinstance(found, ErrorCode) and found.is_leader:
                producers = found.log.producers
                if header.is_transactional and not producers.has_transaction(header):
                    verifications[partition] = producers.begin_verification(header)
        if not verifications or not self._is_enabled():
            return Verified(verifications, {})
        header = headers[next(iter(verifications))]
        producer = ProducerIdAndEpoch(header.producer_id, header.producer_epoch)
        codes = await self._ask(transactional_id, producer, verifications)
        errors = {}
        for partition, code in codes.items():
            if code in _COME_AGAIN:
                errors[partition] = retriable
            elif code in _NOT_PART_OF_IT:
                abortable = ErrorCode.TRANSACTION_ABORTABLE
                errors[partition] = abortable if knows_abortable else ErrorCode.INVALID_TXN_STATE
            elif code is ErrorCode.PRODUCER_FENCED:
                errors[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
            elif code:
                errors[partition] = code
        return Verified(verifications, errors)

    async def _ask(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        count = self._metadata.partition_count(TRANSACTION_STATE_TOPIC)
        if not count:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        where = TopicPartition(TRANSACTION_STATE_TOPIC, partition_of_group(transactional_id, count))
        known = self._metadata.partition(where)
        if known is None or known.leader_id not in self._metadata.brokers:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if known.leader_id == self._broker_id:
            answer = self._coordinator.verify_partitions(transactional_id, producer, partitions)
            return dict.fromkeys(partitions, answer) if isinstance(answer, ErrorCode) else answer
        return await self._ask_broker(known.leader_id, transactional_id, producer, partitions)

    async def _ask_broker(
        self,
        broker_id: int,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
    ) -> Mapping[TopicPartition, ErrorCode]:
        request = AddPartitionsToTxnRequest(
            transactions=[
                _Transaction(
                    transactional_id=transactional_id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    verify_only=True,
                    topics=[
                        _Transaction.AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                        for topic, numbers in by_topic(sorted(partitions)).items()
                    ],
                )
            ]
        )
        try:
            answer = await self._peers.call(broker_id, request.API_KEY, _VERSION, request)
        except OSError:
            return dict.fromkeys(partitions, ErrorCode.NETWORK_EXCEPTION)
        if answer.error_code:
            return dict.fromkeys(partitions, ErrorCode.of(answer.error_code))
        return {
            TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }
