"""CreateTopics: create topics, placed by Kafka's algorithm or manually. Served by the controller.

Behaviour:
- Answers when the controller's broker knows a leader for every new partition, or with REQUEST_TIMED_OUT; the
  topics are created even then.
- A request with too many partitions is refused as a whole.
Versions: from 4 on, counts of -1 mean the broker's defaults; 5 returns the configs, 7 the topic id.
Not supported: quotas for changes; policies.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.cluster.broker.creation import RequestedTopic
from restow.cluster.broker.topic_rules import (
    FROM_DEFAULT,
    TopicRefused,
    check_count,
    check_named_once,
    check_served_here,
)
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import CreateTopicsResponse, Message

if TYPE_CHECKING:
    from restow.cluster.broker.creation import PlannedTopic

_Result = CreateTopicsResponse.CreatableTopicResult


@handles(19, range(2, 8))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    results = {}
    created = []
    times = Counter(topic.name for topic in body.topics)
    wanted = _partitions_wanted(body.topics, context)
    for topic in body.topics:
        try:
            check_count(wanted)
            planned = await _plan(topic, times[topic.name], context)
            if not body.validate_only:
                await context.broker.creation.create(planned)
        except TopicRefused as refused:
            results[topic.name] = _Result(
                name=topic.name, error_code=refused.code, error_message=str(refused), configs=None
            )
            continue
        results[topic.name] = _described(planned, context)
        if not body.validate_only:
            created.append(planned)
    await _wait(created, results, body.timeout_ms / 1000, context)
    return CreateTopicsResponse(topics=[results[topic.name] for topic in body.topics])


def _partitions_wanted(topics: list[Message], context: RequestContext) -> int:
    """Return the number of partitions that a request would create, over all its topics."""
    default = context.broker.configs.integer("num.partitions")
    counts = (len(each.assignments) or each.num_partitions for each in topics)
    return sum(default if count == FROM_DEFAULT else max(count, 0) for count in counts)


async def _plan(topic: Message, times: int, context: RequestContext) -> PlannedTopic:
    check_served_here(context.broker.controller)
    check_named_once(topic.name, times)
    numbers = [each.partition_index for each in topic.assignments]
    if len(set(numbers)) < len(numbers):
        raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is named more than once.")
    return await context.broker.creation.plan(
        RequestedTopic(
            name=topic.name,
            partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            by_hand={each.partition_index: tuple(each.broker_ids) for each in topic.assignments} or None,
            configs={each.name: each.value for each in topic.configs},
        )
    )


def _described(planned: PlannedTopic, context: RequestContext) -> Message:
    return _Result(
        name=planned.name,
        topic_id=planned.uuid,
        error_message=None,
        num_partitions=len(planned.assignment),
        replication_factor=len(planned.assignment[0]),
        configs=[
            CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs(
                name=each.name,
                value=each.value,
                read_only=each.read_only,
                config_source=each.source,
                is_sensitive=each.sensitive,
            )
            for each in context.broker.configs.describe_new_topic(planned.configs)
        ],
    )


async def _wait(
    created: list[PlannedTopic], results: dict[str, Message], timeout_s: float, context: RequestContext
) -> None:
    """Wait until all created topics have leaders; the others time out."""
    metadata = context.broker.metadata

    def is_led(planned: PlannedTopic) -> bool:
        known = metadata.partitions(planned.name)
        return len(known) == len(planned.assignment) and all(each.leader_id >= 0 for each in known)

    if await metadata.until(lambda: all(map(is_led, created)), timeout_s):
        return
    for planned in created:
        if not is_led(planned):
            results[planned.name] = _Result(
                name=planned.name,
                error_code=ErrorCode.REQUEST_TIMED_OUT,
                error_message="The topic is being created, but not all of its partitions have a leader yet.",
                configs=None,
            )
