"""AlterPartition: a leader asks the controller to change the ISRs of its partitions.

Behaviour:
- The controller writes the states, if leader and partition epochs are its own and all brokers of the new ISR
  are alive and not shutting down. Asking again for what is already so is no error.
- The request must have the broker's registration epoch, which clients do not know.
Versions: 0 and 1 name topics, later ones have topic ids; 3 has the epochs of the ISR's brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller import ControllerError, IsrChange, IsrChangeKey
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import by_topic
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterPartitionResponse, Message

if TYPE_CHECKING:
    from restow.cluster.controller import Leadership

_FIRST_WITH_TOPIC_IDS = 2
_FIRST_WITH_BROKER_EPOCHS = 3


@handles(56, range(4))
async def handle(request: Request, context: RequestContext) -> Message:
    body, version = request.body, request.api_version
    changes = {
        IsrChangeKey(
            topic.topic_id if version >= _FIRST_WITH_TOPIC_IDS else topic.topic_name, each.partition_index
        ): _change(body.broker_id, each, version)
        for topic in body.topics
        for each in topic.partitions
    }
    try:
        results = await context.broker.controller.alter_isrs(body.broker_id, body.broker_epoch, changes)
    except ControllerError as error:
        return AlterPartitionResponse(error_code=error.code, topics=[])
    topics = by_topic(
        (topic, _answer(number, result, version)) for (topic, number), result in results.items()
    )
    make = AlterPartitionResponse.TopicData
    key = "topic_id" if version >= _FIRST_WITH_TOPIC_IDS else "topic_name"
    return AlterPartitionResponse(
        topics=[make(**{key: topic}, partitions=each) for topic, each in topics.items()]
    )


def _change(leader: int, it: Message, version: int) -> IsrChange:
    brokers = it.new_isr_with_epochs if version >= _FIRST_WITH_BROKER_EPOCHS else ()
    return IsrChange(
        leader=leader,
        leader_epoch=it.leader_epoch,
        isr=tuple(each.broker_id for each in brokers) if brokers else tuple(it.new_isr or ()),
        partition_epoch=it.partition_epoch,
        recovery=it.leader_recovery_state,
        broker_epochs=tuple(each.broker_epoch for each in brokers),
    )


def _answer(number: int, result: Leadership | ErrorCode, version: int) -> Message:
    make = AlterPartitionResponse.TopicData.PartitionData
    if isinstance(result, ErrorCode):
        if result is ErrorCode.INELIGIBLE_REPLICA and version < _FIRST_WITH_TOPIC_IDS:
            result = ErrorCode.OPERATION_NOT_ATTEMPTED
        return make(partition_index=number, error_code=result, isr=[])
    return make(
        partition_index=number,
        leader_id=result.leader,
        leader_epoch=result.leader_epoch,
        isr=list(result.isr),
        leader_recovery_state=result.recovery,
        partition_epoch=result.version,
    )
