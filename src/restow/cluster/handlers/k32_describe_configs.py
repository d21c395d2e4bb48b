"""DescribeConfigs: return the configs of topics and brokers, with their sources.

Behaviour: a broker describes itself and the configs of all brokers; any broker describes topics.
Versions: 1 adds synonyms, 3 the config's type.
Not supported: documentation of configs; loggers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from restow.cluster.broker.topic_rules import TopicRefused
from restow.cluster.handlers.config_resources import ResourceType, resource
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import DescribeConfigsResponse, Message

if TYPE_CHECKING:
    from restow.cluster.config.configs import ConfigEntry

_Result = DescribeConfigsResponse.DescribeConfigsResult
_Config = _Result.DescribeConfigsResourceResult


@handles(32, range(1, 5))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    results = []
    for asked in body.resources:
        try:
            entries = await _entries(asked, context)
        except TopicRefused as refused:
            results.append(
                _Result(
                    error_code=refused.code,
                    error_message=str(refused),
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    configs=[],
                )
            )
            continue
        results.append(
            _Result(
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[_config(each, synonyms=body.include_synonyms) for each in entries],
            )
        )
    return DescribeConfigsResponse(results=results)


async def _entries(asked: Message, context: RequestContext) -> tuple[ConfigEntry, ...]:
    found = resource(asked.resource_type, asked.resource_name, context)
    configs, names = context.broker.configs, asked.configuration_keys or None
    if found.type is ResourceType.TOPIC:
        await context.broker.config_store.learn([found.topic])
        return configs.describe_topic(found.topic, names)
    if found.broker_id is None:
        return configs.describe_all_brokers(names)
    return configs.describe_broker(names)


@lru_cache(maxsize=4096)
def _config(it: ConfigEntry, *, synonyms: bool) -> Message:
    """Return a config's part of a response. Most configs are the same whenever somebody asks."""
    return _Config(
        name=it.name,
        value=None if it.sensitive else it.value,
        read_only=it.read_only,
        config_source=it.source,
        is_sensitive=it.sensitive,
        synonyms=[
            _Config.DescribeConfigsSynonym(
                name=each.name, value=None if it.sensitive else each.value, source=each.source
            )
            for each in (it.synonyms if synonyms else ())
        ],
        config_type=it.type,
        documentation=None,
    )
