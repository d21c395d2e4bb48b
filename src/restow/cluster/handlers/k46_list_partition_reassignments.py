"""ListPartitionReassignments: return ongoing reassignments, with adding and removing replicas.

Behaviour: served by the controller. Null asks for all. Other partitions are left out of the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerError
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import TopicPartition
from restow.wire.messages import ListPartitionReassignmentsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import ReplicaAssignment


@handles(46, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    wanted = None
    if request.body.topics is not None:
        wanted = [
            TopicPartition(topic.name, number)
            for topic in request.body.topics
            for number in topic.partition_indexes
        ]
    try:
        found = await context.broker.controller.list_reassignments(wanted)
    except ControllerError as error:
        return ListPartitionReassignmentsResponse(error_code=error.code, error_message=f"{error}.", topics=[])
    return ListPartitionReassignmentsResponse(topics=_topics(found))


def _topics(found: Mapping[TopicPartition, ReplicaAssignment]) -> list[Message]:
    ongoing = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    topics: dict[str, list[Message]] = {}
    for (topic, number), assignment in found.items():
        topics.setdefault(topic, []).append(
            ongoing.OngoingPartitionReassignment(
                partition_index=number,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return [ongoing(name=topic, partitions=partitions) for topic, partitions in topics.items()]
