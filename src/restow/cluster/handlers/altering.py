"""Common part of both requests that alter configs: check and write each resource by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.cluster.broker.cordons import CORDONED_LOG_DIRS, check_cordoned
from restow.cluster.broker.topic_rules import TopicRefused
from restow.cluster.config.changes import check_broker, check_topic
from restow.cluster.config.table import BROKER_CONFIGS, TOPIC_CONFIGS, InvalidConfig
from restow.cluster.handlers.config_resources import ResourceType, resource
from restow.cluster.store.znodes import EntityConfig
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.config.table import Definition
    from restow.wire.messages import Message

    Decide: TypeAlias = Callable[
        [Mapping[str, Definition], Message, Mapping[str, str]], Mapping[str, str | None]
    ]
    """Computes the new configs from the effective configs, the request and the current ones."""


async def alter_all(body: Message, decide: Decide, response: Message, context: RequestContext) -> Message:
    """Alter each resource of a request, and return the response, which has a result for each."""
    times = Counter((each.resource_type, each.resource_name) for each in body.resources)
    answers = []
    for asked in body.resources:
        code, message = ErrorCode.NONE, None
        try:
            _check_named_once(times[asked.resource_type, asked.resource_name])
            await _alter(asked, decide, context, only_check=body.validate_only)
        except TopicRefused as refused:
            code, message = refused.code, str(refused)
        except InvalidConfig as error:
            code, message = error.code, f"{error}."
        answers.append(
            response.AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
        )
    return response(responses=answers)


def _check_named_once(times: int) -> None:
    if times > 1:
        raise TopicRefused(ErrorCode.INVALID_REQUEST, f"The resource is named {times} times in one request.")


async def _alter(asked: Message, decide: Decide, context: RequestContext, *, only_check: bool) -> None:
    found = resource(asked.resource_type, asked.resource_name, context)
    written = context.broker.config_store
    if found.type is ResourceType.TOPIC:

        def topics(current: Mapping[str, str]) -> Mapping[str, str]:
            return check_topic(decide(TOPIC_CONFIGS, asked, current))

        await written.alter(EntityConfig.topic_path(found.topic), topics, only_check=only_check)
    else:

        def brokers(current: Mapping[str, str]) -> Mapping[str, str]:
            after = check_broker(decide(BROKER_CONFIGS, asked, current), for_all=found.broker_id is None)
            if CORDONED_LOG_DIRS in after:
                log_dirs = [each.path for each in context.broker.logs.directories]
                check_cordoned(BROKER_CONFIGS[CORDONED_LOG_DIRS].parse(after[CORDONED_LOG_DIRS]), log_dirs)
            return after

        await written.alter(EntityConfig.broker_path(found.broker_id), brokers, only_check=only_check)
