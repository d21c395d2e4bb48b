"""ElectLeaders: hold preferred or unclean elections. Served by the controller.

Behaviour:
- Answers when the controller's broker knows the new leaders, or with REQUEST_TIMED_OUT for the others.
- Null asks for all partitions; those that need no election are left out of the response.
Versions: 0 has only the preferred election; 1 adds the unclean one and a top-level error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerError, Election
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ElectLeadersResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


@handles(43, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    kind = _KINDS.get(body.election_type if request.api_version >= 1 else 0)
    if kind is None:
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST, replica_election_results=[])
    wanted = None
    if body.topic_partitions is not None:
        wanted = [
            TopicPartition(topic.topic, number)
            for topic in body.topic_partitions
            for number in topic.partitions
        ]
    try:
        codes = await context.broker.controller.elect_leaders(kind, wanted)
    except ControllerError as error:
        failed = dict.fromkeys(wanted or (), error.code)
        return ElectLeadersResponse(error_code=error.code, replica_election_results=_results(failed))
    codes |= await _late(kind, codes, body.timeout_ms / 1000, context)
    return ElectLeadersResponse(replica_election_results=_results(codes))


async def _late(
    kind: Election, codes: Mapping[TopicPartition, ErrorCode], timeout_s: float, context: RequestContext
) -> dict[TopicPartition, ErrorCode]:
    """Return the elected partitions whose leader this broker did not learn in time."""
    metadata = context.broker.metadata
    elected = [partition for partition, code in codes.items() if code is ErrorCode.NONE]

    def is_known(partition: TopicPartition) -> bool:
        known = metadata.partition(partition)
        if known is None:
            return True
        return known.leader_id == known.replicas[0] if kind is Election.PREFERRED else known.leader_id >= 0

    if await metadata.until(lambda: all(map(is_known, elected)), timeout_s):
        return {}
    return {each: ErrorCode.REQUEST_TIMED_OUT for each in elected if not is_known(each)}


def _results(codes: Mapping[TopicPartition, ErrorCode]) -> list[Message]:
    result = ElectLeadersResponse.ReplicaElectionResult
    topics: dict[str, list[Message]] = {}
    for (topic, number), code in codes.items():
        message = f"{code.message}." if code else None
        topics.setdefault(topic, []).append(
            result.PartitionResult(partition_id=number, error_code=code, error_message=message)
        )
    return [result(topic=topic, partition_result=results) for topic, results in topics.items()]
