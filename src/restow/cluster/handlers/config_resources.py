"""Config resources that can be described and altered: topics, this broker, and all brokers."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.broker.topic_rules import TopicRefused, check_name
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext

_LONGEST_ID = 10


class ResourceType(IntEnum):
    """Resource types with the protocol's numbers; others are not supported."""

    TOPIC = 2
    BROKER = 4


class ConfigEntity(NamedTuple):
    """A topic by name; a broker by its id, None for all brokers."""

    type: ResourceType
    topic: str = ""
    broker_id: int | None = None


def resource(resource_type: int, name: str, context: RequestContext) -> ConfigEntity:
    """Return the resource if it exists and this broker serves it; otherwise raise TopicRefused."""
    if resource_type == ResourceType.TOPIC:
        check_name(name)
        if name not in context.broker.metadata.topics:
            raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{name}'.")
        return ConfigEntity(ResourceType.TOPIC, topic=name)
    if resource_type == ResourceType.BROKER:
        return ConfigEntity(ResourceType.BROKER, broker_id=_broker_id(name, context) if name else None)
    raise TopicRefused(
        ErrorCode.INVALID_REQUEST,
        f"Configs of resources of type {resource_type} are not kept here; topics and brokers have some.",
    )


def _broker_id(name: str, context: RequestContext) -> int:
    here = context.broker.broker_id
    is_number = name.isascii() and name.isdigit() and len(name) <= _LONGEST_ID
    if not is_number or int(name) != here:
        raise TopicRefused(
            ErrorCode.INVALID_REQUEST, f"This is broker {here}, which does not keep the configs of {name!r}."
        )
    return here
