"""AlterConfigs: replace all configs of topics and brokers; omitted ones return to their defaults.

Behaviour: any broker serves topics and the configs of all brokers; a broker's own configs are altered by
itself. IncrementalAlterConfigs changes only what it names.
Not supported: loggers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.config.changes import InvalidChange
from restow.cluster.handlers.altering import alter_all
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.messages import AlterConfigsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.config.table import Definition


@handles(33, range(3))
async def handle(request: Request, context: RequestContext) -> Message:
    return await alter_all(request.body, _replaced, AlterConfigsResponse, context)


def _replaced(_: Mapping[str, Definition], asked: Message, __: Mapping[str, str]) -> Mapping[str, str | None]:
    for each in asked.configs:
        if each.value is None:
            raise InvalidChange(f"{each.name} needs a value; leave it out to have the default")
    return {each.name: each.value for each in asked.configs}
