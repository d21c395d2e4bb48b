"""DescribeLogDirs: return this broker's log dirs, their replicas and their free space.

Behaviour: a log dir with a failed disk has KAFKA_STORAGE_ERROR and no replicas.
Versions: 4 adds the volume's total and usable bytes, 5 whether it is cordoned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.log.errors import DiskFailure
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.making import maker_of
from restow.wire.messages import DescribeLogDirsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Container

    from restow.cluster.log import LogManager, PartitionLog
    from restow.cluster.log.directory import LogDirectory

_Result = DescribeLogDirsResponse.DescribeLogDirsResult
_topic = maker_of(_Result.DescribeLogDirsTopic)
_partition = maker_of(_Result.DescribeLogDirsTopic.DescribeLogDirsPartition)


@handles(35, range(1, 6))
async def handle(request: Request, context: RequestContext) -> Message:
    asked = request.body.topics
    wanted = None
    if asked is not None:
        wanted = {TopicPartition(topic.topic, number) for topic in asked for number in topic.partitions}
    logs = context.broker.logs
    return DescribeLogDirsResponse(results=[_describe(each, logs, wanted) for each in logs.directories])


def _describe(directory: LogDirectory, logs: LogManager, wanted: Container[TopicPartition] | None) -> Message:
    try:
        if directory.is_online:
            total, free = directory.disk.space(directory.path)
            return _Result(
                log_dir=directory.path,
                topics=_topics(directory, logs, wanted),
                total_bytes=total,
                usable_bytes=free,
                is_cordoned=directory.path in logs.cordoned(),
            )
    except DiskFailure:
        pass  # It has just failed, and its owner has been called back.
    return _Result(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[])


def _topics(
    directory: LogDirectory, logs: LogManager, wanted: Container[TopicPartition] | None
) -> list[Message]:
    topics: dict[str, list[Message]] = {}
    for future, held in ((False, directory.logs), (True, directory.futures)):
        for partition, log in held.items():
            if wanted is None or partition in wanted:
                topics.setdefault(partition.topic, []).append(
                    _partition(
                        partition_index=partition.partition,
                        partition_size=log.size_bytes,
                        offset_lag=_lag(log, logs.get(partition) if future else None),
                        is_future_key=future,
                    )
                )
    return [_topic(name=name, partitions=partitions) for name, partitions in topics.items()]


def _lag(log: PartitionLog, present: PartitionLog | None) -> int:
    """Return how far a log is behind its high watermark, or a copy behind the log it will replace."""
    upto = log.high_watermark if present is None else present.end_offset
    return max(upto - log.end_offset, 0)
