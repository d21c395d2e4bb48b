"""Replicas over the wire: log dirs, reassignments, and leader elections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from restow.client.errors import BrokerError, Unreachable
from restow.client.hedging import TOO_SLOW, Stragglers
from restow.client.link import Requests
from restow.client.values import BrokerLogDirs, PartitionReassignment, ReplicaOnDisk, TopicPartitionReplica
from restow.model import LogDir, TopicPartition, by_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.client.link import Link
    from restow.model import BrokerId
    from restow.wire.messages import Message

_PREFERRED = 0
_ALTER, _DESCRIBE = "ALTER on the cluster", "DESCRIBE on the cluster"


class ReplicaRequests(Requests):
    """Requests about replicas."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._stragglers = Stragglers()

    async def describe_log_dirs(
        self, brokers: Iterable[BrokerId], patience_s: float | None = None
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        asked = tuple(brokers)
        questions = {broker: partial(_log_dirs_of, self._link, broker) for broker in asked}
        answers = await self._stragglers.answers(questions, patience_s)
        return {broker: answers.get(broker, TOO_SLOW) for broker in asked}

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        by_broker: dict[BrokerId, dict[str, dict[str, list[int]]]] = {}
        for (partition, broker), path in targets.items():
            topics = by_broker.setdefault(broker, {}).setdefault(path, {})
            topics.setdefault(partition.topic, []).append(partition.partition)
        outcome: dict[TopicPartitionReplica, BrokerError | None] = {}
        for broker, paths in by_broker.items():
            directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    directory(
                        path=path,
                        topics=[
                            directory.AlterReplicaLogDirTopic(name=topic, partitions=partitions)
                            for topic, partitions in topics.items()
                        ],
                    )
                    for path, topics in paths.items()
                ]
            )
            try:
                answer = await self._link.ask(request, broker)
            except Unreachable as error:
                down = BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
                outcome.update({each: down for each in targets if each.broker == broker})
                continue
            for topic in answer.results:
                for each in topic.partitions:
                    partition = TopicPartition(topic.topic_name, each.partition_index)
                    outcome[TopicPartitionReplica(partition, broker)] = BrokerError.of(
                        each.error_code, needs=_ALTER
                    )
        return outcome

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._link.timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        topic.ReassignablePartition(
                            partition_index=number, replicas=None if replicas is None else list(replicas)
                        )
                        for number, replicas in partitions
                    ],
                )
                for name, partitions in by_topic(
                    (name, (number, replicas)) for (name, number), replicas in targets.items()
                ).items()
            ],
            # An older broker cannot check the factor, so the request must not be sent to it.
            **({} if allow_replication_factor_change else {"min_version": 1}),
        )
        answer = await self._link.ask_controller(request, lambda got: got.error_code)
        BrokerError.check(answer.error_code, answer.error_message, _ALTER)
        return {
            TopicPartition(each.name, partition.partition_index): BrokerError.of(
                partition.error_code, partition.error_message, _ALTER
            )
            for each in answer.responses
            for partition in each.partitions
        }

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        wanted = None
        if partitions is not None:
            topic = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
            wanted = [
                topic(name=name, partition_indexes=numbers) for name, numbers in by_topic(partitions).items()
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=self._link.timeout_ms, topics=wanted)
        answer = await self._link.ask_controller(request, lambda got: got.error_code, changes=False)
        BrokerError.check(answer.error_code, answer.error_message, _DESCRIBE)
        return {
            TopicPartition(each.name, found.partition_index): PartitionReassignment(
                replicas=tuple(found.replicas),
                adding=tuple(found.adding_replicas),
                removing=tuple(found.removing_replicas),
            )
            for each in answer.topics
            for found in each.partitions
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Elect preferred leaders; ELECTION_NOT_NEEDED is no error."""
        topic = ElectLeadersRequest.TopicPartitions
        request = ElectLeadersRequest(
            election_type=_PREFERRED,
            topic_partitions=[
                topic(topic=name, partitions=numbers) for name, numbers in by_topic(partitions).items()
            ],
            timeout_ms=self._link.timeout_ms,
        )
        answer = await self._link.ask_controller(request, lambda got: getattr(got, "error_code", 0) or 0)
        BrokerError.check(getattr(answer, "error_code", 0) or 0, needs=_ALTER)
        outcome: dict[TopicPartition, BrokerError | None] = {}
        for each in answer.replica_election_results:
            for result in each.partition_result:
                code = result.error_code
                error = (
                    None
                    if code == ErrorCode.ELECTION_NOT_NEEDED
                    else BrokerError.of(code, result.error_message, _ALTER)
                )
                outcome[TopicPartition(each.topic, result.partition_id)] = error
        return outcome


async def _log_dirs_of(link: Link, broker: BrokerId) -> BrokerLogDirs | BrokerError:
    try:
        answer = await link.ask(DescribeLogDirsRequest(topics=None), broker)
    except Unreachable as error:
        return BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
    if error_or_none := BrokerError.of(getattr(answer, "error_code", 0) or 0, needs=_DESCRIBE):
        return error_or_none
    if not answer.results:  # the answer of brokers before 3.2 to a client without the ACL
        return BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, needs=_DESCRIBE)
    return BrokerLogDirs(
        log_dirs=tuple(_log_dir(each) for each in answer.results),
        replicas=tuple(
            ReplicaOnDisk(
                partition=TopicPartition(topic.name, each.partition_index),
                log_dir=directory.log_dir,
                size_bytes=each.partition_size,
                lag_messages=each.offset_lag,
                future=each.is_future_key,
            )
            for directory in answer.results
            for topic in directory.topics
            for each in topic.partitions
        ),
    )


def _log_dir(directory: Message) -> LogDir:
    """Read one log dir. Brokers before 3.3 send -1 as its sizes, those before 4.3 have no cordons."""
    total, usable = directory.total_bytes, directory.usable_bytes
    return LogDir(
        path=directory.log_dir,
        total_bytes=total if total is not None and total >= 0 else None,
        usable_bytes=usable if usable is not None and usable >= 0 else None,
        failed=bool(directory.error_code),
        cordoned=bool(directory.is_cordoned),
    )
