"""AlterPartitionReassignments: start, replace or cancel reassignments. Served by the controller.

Behaviour:
- Answers when the reassignments have started; ListPartitionReassignments shows when they are done.
- Null as replicas cancels a reassignment and restores the earlier replicas.
- Each partition has its own error; a refused one does not affect the others.
Versions: 1 may forbid changes of the replication factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerError, ReassignmentTarget
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.messages import AlterPartitionReassignmentsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.controller import Refusal


@handles(45, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    may_change = body.allow_replication_factor_change
    targets = {
        TopicPartition(topic.name, each.partition_index): ReassignmentTarget(
            None if each.replicas is None else tuple(each.replicas),
            allow_replication_factor_change=may_change,
        )
        for topic in body.topics
        for each in topic.partitions
    }
    try:
        outcomes = await context.broker.controller.alter_reassignments(targets)
    except ControllerError as error:
        return AlterPartitionReassignmentsResponse(
            error_code=error.code,
            error_message=f"{error}.",
            responses=[],
            allow_replication_factor_change=may_change,
        )
    return AlterPartitionReassignmentsResponse(
        responses=_responses(outcomes), allow_replication_factor_change=may_change
    )


def _responses(outcomes: Mapping[TopicPartition, Refusal | None]) -> list[Message]:
    response = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    topics: dict[str, list[Message]] = {}
    for (topic, number), refusal in outcomes.items():
        topics.setdefault(topic, []).append(
            response.ReassignablePartitionResponse(
                partition_index=number,
                error_code=0 if refusal is None else refusal.code,
                error_message=None if refusal is None else refusal.message,
            )
        )
    return [response(name=topic, partitions=partitions) for topic, partitions in topics.items()]
