"""DescribeClientQuotas: the quotas of users, client ids and addresses that match a filter.

Behaviour:
- Answered from the store, so a change shows at once.
- An entity matches if each component does; with `strict`, it has no other types than those of the filter.
- Users and client ids on one side and addresses on the other are never in one filter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.quotas import InvalidQuota
from restow.cluster.quotas.entities import CLIENT_ID, IP, USER
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeClientQuotasResponse, Message

if TYPE_CHECKING:
    from collections.abc import Mapping

_Entry = DescribeClientQuotasResponse.EntryData


class _Match(IntEnum):
    EXACT = 0
    DEFAULT = 1
    ANY = 2


@handles(48, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    try:
        components = _components(body)
    except InvalidQuota as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=str(refused), entries=None)
    found = await context.broker.quota_store.all()
    entries = [
        _Entry(
            entity=[_Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in parts.items()],
            values=[_Entry.ValueData(key=key, value=value) for key, value in quotas.items()],
        )
        for entity, quotas in found.items()
        if _matches(components, parts := entity.parts(), strict=body.strict)
    ]
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def _components(body: Message) -> dict[str, Message]:
    components: dict[str, Message] = {}
    for each in body.components:
        kind = each.entity_type
        if not kind:
            raise InvalidQuota("Unexpected empty filter component entity type")
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidQuota(f"Custom entity type '{kind}' not supported", ErrorCode.UNSUPPORTED_VERSION)
        if kind in components:
            raise InvalidQuota(f"Duplicate {kind} filter component entity type")
        if each.match_type not in tuple(_Match):
            raise InvalidQuota(f"Unexpected match type: {each.match_type}", ErrorCode.UNKNOWN_SERVER_ERROR)
        components[kind] = each
    if IP in components and len(components) > 1:
        raise InvalidQuota(
            "Invalid entity filter component combination, IP filter component should not be used with"
            " user or clientId filter component."
        )
    return components


def _matches(components: Mapping[str, Message], parts: Mapping[str, str | None], *, strict: bool) -> bool:
    if strict and parts.keys() - components.keys():
        return False
    for kind, each in components.items():
        if kind not in parts:
            return False
        if each.match_type == _Match.EXACT and parts[kind] != each.match:
            return False
        if each.match_type == _Match.DEFAULT and parts[kind] is not None:
            return False
    return True
