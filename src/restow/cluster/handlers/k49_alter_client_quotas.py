"""AlterClientQuotas: set or remove quotas of users, client ids and addresses.

Behaviour:
- Each entity's quotas change together or not at all.
- They are stored where Kafka with ZooKeeper keeps them. All brokers read them a moment later, and what each
  has counted so far counts on.
- A quota that is not greater than 0 is refused, as by Kafka with KRaft; with ZooKeeper it takes them.
- Every broker answers, where Kafka's would only as the controller.
Not supported: quotas of addresses and for changes of topics are stored and shown, but not enforced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.quotas import InvalidQuota, QuotaEntity, written
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterClientQuotasResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

_Entry = AlterClientQuotasResponse.EntryData


@handles(49, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    entries = []
    for each in body.entries:
        code, message = ErrorCode.NONE, None
        try:
            await _alter(context, each, only_check=body.validate_only)
        except InvalidQuota as refused:
            code, message = refused.code, str(refused)
        entity = [
            _Entry.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in each.entity
        ]
        entries.append(_Entry(error_code=code, error_message=message, entity=entity))
    return AlterClientQuotasResponse(entries=entries)


async def _alter(context: RequestContext, entry: Message, *, only_check: bool) -> None:
    entity = QuotaEntity.of([(part.entity_type, part.entity_name) for part in entry.entity])

    def change(values: Mapping[str, str]) -> Mapping[str, str]:
        after = dict(values)
        for each in entry.ops:
            if each.remove:
                after.pop(each.key, None)
            else:
                after[each.key] = written(entity, each.key, each.value)
        return after

    broker = context.broker
    await broker.config_store.alter(
        entity.path, change, only_check=only_check, writing=broker.quota_store.writes
    )
