"""What a request asks about: its topics and partitions, whatever its API and version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.model import TopicPartition
from restow.wire.codec import FETCH, PRODUCE
from restow.wire.messages import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster.broker.services import RequestContext
    from restow.wire.codec import Request
    from restow.wire.messages import Message

METADATA = 3
TOPIC_LISTS = ("topics", "topic_data", "topic_states", "topic_names", "topic_partitions", "resources")
"""Fields of requests that list topics, or configs of topics."""
_NAMES = ("name", "topic", "topic_name")
_NESTED = ("groups", "dirs")
"""Fields of requests whose elements may list topics."""
_TOPIC_RESOURCE = 2


def is_about_topics(api_key: int) -> bool:
    """Return whether requests of this API name topics."""
    fields = REQUESTS[api_key].fields
    below = [fields[each].data_class.fields for each in _NESTED if _is_struct(fields.get(each))]
    return any(name in each for each in (fields, *below) for name in TOPIC_LISTS)


def _is_struct(field: Any) -> bool:
    return field is not None and bool(field.is_struct_array())


def topic_of(element: Message, context: RequestContext) -> str | None:
    """Return the topic that an element of such a list is about, whether it has a name or an id."""
    if isinstance(element, str):
        return element
    if hasattr(element, "resource_type"):
        return str(element.resource_name) if element.resource_type == _TOPIC_RESOURCE else None
    name = next((found for field in _NAMES if (found := getattr(element, field, None))), None)
    topic_id = getattr(element, "topic_id", None)
    if name is None and topic_id is not None:
        return context.broker.metadata.name_of(topic_id)
    return name


def topics_of(request: Request, context: RequestContext) -> frozenset[str]:
    """Return the topics that a request is about."""
    body = request.body
    if request.api_key == METADATA and asks_for_all_topics(request):
        return frozenset(context.broker.metadata.topics)
    found = set(_topics_in(body, context))
    for nested in _NESTED:
        for each in getattr(body, nested, None) or ():
            found.update(_topics_in(each, context))
    if request.api_key == FETCH:
        found.update(partition.topic for partition in session_of(request, context))
    return frozenset(found)


def partitions_of(request: Request, context: RequestContext) -> frozenset[TopicPartition]:
    """Return the partitions that a Produce or Fetch is about."""
    body = request.body
    if request.api_key == PRODUCE:
        return frozenset(
            TopicPartition(topic.name, each.index)
            for topic in body.topic_data
            for each in topic.partition_data
        )
    named = {
        TopicPartition(name, each.partition)
        for topic in body.topics
        if (name := topic_of(topic, context)) is not None
        for each in topic.partitions
    }
    return frozenset(named.union(session_of(request, context)))


def session_of(request: Request, context: RequestContext) -> tuple[TopicPartition, ...]:
    """Return the partitions of a Fetch's session, which the request does not repeat."""
    if request.body.session_epoch <= 0:
        return ()
    return context.broker.replicas.sessions.partitions_of(request.body.session_id)


def asks_for_all_topics(request: Request) -> bool:
    """Return whether a Metadata request names no topics because it wants all of them."""
    topics = request.body.topics
    return topics is None or (request.api_version == 0 and not topics)


def _topics_in(body: Message, context: RequestContext) -> Iterator[str]:
    for field in TOPIC_LISTS:
        for element in getattr(body, field, None) or ():
            if (topic := topic_of(element, context)) is not None:
                yield topic
