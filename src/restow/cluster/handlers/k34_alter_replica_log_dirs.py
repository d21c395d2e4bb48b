"""AlterReplicaLogDirs: move replicas of this broker to other log dirs.

Behaviour:
- Answers when the move is accepted; DescribeLogDirs shows its progress.
- Naming the replica's current log dir cancels a move.
- A replica that is not here yet is answered with REPLICA_NOT_AVAILABLE, and will be created in that log dir.
  So kafka-reassign-partitions chooses log dirs on other brokers.
- A cordoned log dir is refused with INVALID_REPLICA_ASSIGNMENT, even for a replica in it.
Versions: 2 only has another encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.replication.values import PartitionRefused
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterReplicaLogDirsResponse, Message

if TYPE_CHECKING:
    from restow.cluster.replication.log_dir_moves import LogDirMoves

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = _Topic.AlterReplicaLogDirPartitionResult


@handles(34, range(1, 3))
async def handle(request: Request, context: RequestContext) -> Message:
    broker = context.broker
    answers: dict[TopicPartition, ErrorCode] = {}
    async with broker.controller_requests.turn:
        for directory in request.body.dirs:
            for topic in directory.topics:
                for number in topic.partitions:
                    partition = TopicPartition(topic.name, number)
                    answers[partition] = _ask(broker.moves, partition, directory.path)
    topics: dict[str, list[Message]] = {}
    for (topic_name, number), code in answers.items():
        topics.setdefault(topic_name, []).append(_Partition(partition_index=number, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=[_Topic(topic_name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _ask(moves: LogDirMoves, partition: TopicPartition, path: str) -> ErrorCode:
    try:
        moves.ask(partition, path)
    except PartitionRefused as refused:
        return refused.code
    return ErrorCode.NONE
