"""CreatePartitions: add partitions to existing topics. Served by the controller.

Behaviour:
- Answers when the controller's broker knows leaders for the new partitions, or with REQUEST_TIMED_OUT.
- A request with too many partitions is refused as a whole.
Not supported: quotas for changes.
"""

from __future__ import annotations

from collections import Counter

from restow.cluster.broker.cordons import without_cordoned
from restow.cluster.broker.topic_rules import (
    TopicRefused,
    check_count,
    check_named_once,
    check_served_here,
    more_partitions,
)
from restow.cluster.controller import ControllerError, assigned_replicas, create_partitions
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import CreatePartitionsResponse, Message


@handles(37, range(4))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    results: dict[str, TopicRefused | None] = {}
    grown: dict[str, int] = {}
    times = Counter(topic.name for topic in body.topics)
    metadata = context.broker.metadata
    more = sum(max(topic.count - metadata.partition_count(topic.name), 0) for topic in body.topics)
    for topic in body.topics:
        results[topic.name] = None
        try:
            check_count(more)
            await _grow(topic, times[topic.name], context, only_check=body.validate_only)
        except TopicRefused as refused:
            results[topic.name] = refused
        else:
            if not body.validate_only:
                grown[topic.name] = topic.count
    await _wait(grown, results, body.timeout_ms / 1000, context)
    return CreatePartitionsResponse(results=[_result(*each) for each in results.items()])


async def _grow(topic: Message, times: int, context: RequestContext, *, only_check: bool) -> None:
    broker = context.broker
    check_served_here(broker.controller)
    check_named_once(topic.name, times)
    if broker.controller.is_deleting(topic.name):
        raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{topic.name}' is queued for deletion.")
    current = await assigned_replicas(broker.store, topic.name)  # this broker may not know a new topic yet
    if not current:
        raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{topic.name}'.")
    by_hand = None if topic.assignments is None else [tuple(each.broker_ids) for each in topic.assignments]
    brokers = broker.metadata.placement_brokers()
    if by_hand is None:
        brokers = await without_cordoned(broker.store, brokers)
    added = more_partitions(current, brokers, to=topic.count, by_hand=by_hand)
    if only_check:
        return
    try:
        await create_partitions(broker.store, topic.name, added)
    except ControllerError as error:
        raise TopicRefused(error.code, f"{error}.") from error


async def _wait(
    grown: dict[str, int], results: dict[str, TopicRefused | None], timeout_s: float, context: RequestContext
) -> None:
    metadata = context.broker.metadata

    def is_led(name: str) -> bool:
        known = metadata.partitions(name)
        return len(known) >= grown[name] and all(each.leader_id >= 0 for each in known)

    if not await metadata.until(lambda: all(map(is_led, grown)), timeout_s):
        late = TopicRefused(ErrorCode.REQUEST_TIMED_OUT, "Not all of the new partitions have a leader yet.")
        results |= {name: late for name in grown if not is_led(name)}


def _result(name: str, refused: TopicRefused | None) -> Message:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name,
        error_code=0 if refused is None else refused.code,
        error_message=None if refused is None else str(refused),
    )
