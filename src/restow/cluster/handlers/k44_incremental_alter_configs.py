"""IncrementalAlterConfigs: set or unset configs of topics and brokers, append to lists or subtract.

Behaviour: any broker serves topics and the configs of all brokers; a broker's own configs are altered by
itself.
Not supported: loggers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.config.changes import AlterConfigOp, altered
from restow.cluster.handlers.altering import alter_all
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import IncrementalAlterConfigsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.config.table import Definition


@handles(44, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    return await alter_all(request.body, _changed, IncrementalAlterConfigsResponse, context)


def _changed(
    definitions: Mapping[str, Definition], asked: Message, current: Mapping[str, str]
) -> Mapping[str, str | None]:
    changes = [AlterConfigOp(each.name, each.config_operation, each.value) for each in asked.configs]
    return {**altered(definitions, current, changes)}
