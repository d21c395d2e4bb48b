"""What each request needs the client to be allowed: one table for all of them, as in Kafka's KafkaApis.

    _WHOLE      what the whole request needs; otherwise all of it is refused
    _ELEMENTS   what each element of a list needs; the others are handled as ever
    _SPECIAL    requests with rules of their own, in `guard_rules.py`
    FREE        requests that need nothing

It stands before the handlers, and only if there is an authorizer. Refused elements never reach a handler.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from restow.cluster.faults.answers import error_answer, handled, lists_answered
from restow.cluster.faults.asked import topic_of
from restow.cluster.security.acls import CLUSTER_NAME, AclOperation, AclResource
from restow.wire.error_codes import ErrorCode
from restow.wire.operations import ON_GROUPS, bits

if TYPE_CHECKING:
    from restow.cluster.broker.services import RequestContext
    from restow.cluster.handlers import Answer, Handler
    from restow.cluster.security.acls import AclRules
    from restow.wire.codec import Request

Proceed: TypeAlias = Callable[["Request", "RequestContext"], Awaitable[Any]]

CODES = {
    AclResource.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResource.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResource.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResource.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_CLUSTER, _TOPIC, _GROUP = AclResource.CLUSTER, AclResource.TOPIC, AclResource.GROUP
_TXN = AclResource.TRANSACTIONAL_ID
_OP = AclOperation


class Need(NamedTuple):
    """An operation on a resource, whose name is in a field of the request; the cluster has one name."""

    operation: AclOperation
    resource: AclResource
    field: str = ""
    first_version: int = 0


class Client(NamedTuple):
    """The client that sent a request, and the rules that it is checked by."""

    rules: AclRules
    context: RequestContext

    def may(self, operation: AclOperation, resource: AclResource, name: str = CLUSTER_NAME) -> bool:
        """Return whether the client is allowed to do that."""
        context = self.context
        return self.rules.allows(context.principal, context.host, operation, resource, name)


def _on_cluster(operation: AclOperation) -> tuple[Need, ...]:
    return (Need(operation, _CLUSTER),)


WHOLE: Mapping[int, tuple[Need, ...]] = {
    4: _on_cluster(_OP.CLUSTER_ACTION),
    5: _on_cluster(_OP.CLUSTER_ACTION),
    6: _on_cluster(_OP.CLUSTER_ACTION),
    7: _on_cluster(_OP.CLUSTER_ACTION),
    8: (Need(_OP.READ, _GROUP, "group_id"),),
    11: (Need(_OP.READ, _GROUP, "group_id"),),
    12: (Need(_OP.READ, _GROUP, "group_id"),),
    13: (Need(_OP.READ, _GROUP, "group_id"),),
    14: (Need(_OP.READ, _GROUP, "group_id"),),
    25: (Need(_OP.WRITE, _TXN, "transactional_id"), Need(_OP.READ, _GROUP, "group_id")),
    26: (Need(_OP.WRITE, _TXN, "transactional_id"),),
    28: (Need(_OP.WRITE, _TXN, "transactional_id"), Need(_OP.READ, _GROUP, "group_id")),
    29: _on_cluster(_OP.DESCRIBE),
    30: _on_cluster(_OP.ALTER),
    31: _on_cluster(_OP.ALTER),
    34: _on_cluster(_OP.ALTER),
    35: _on_cluster(_OP.DESCRIBE),
    43: _on_cluster(_OP.ALTER),
    45: _on_cluster(_OP.ALTER),
    46: _on_cluster(_OP.DESCRIBE),
    47: (Need(_OP.DELETE, _GROUP, "group_id"),),
    48: _on_cluster(_OP.DESCRIBE_CONFIGS),
    49: _on_cluster(_OP.ALTER_CONFIGS),
    50: _on_cluster(_OP.DESCRIBE),
    51: _on_cluster(_OP.ALTER),
    56: _on_cluster(_OP.CLUSTER_ACTION),
    67: _on_cluster(_OP.CLUSTER_ACTION),
    68: (Need(_OP.READ, _GROUP, "group_id"),),
}

ELEMENTS: Mapping[int, tuple[Need, ...]] = {
    2: (Need(_OP.DESCRIBE, _TOPIC, "topics"),),
    8: (Need(_OP.READ, _TOPIC, "topics"),),
    15: (Need(_OP.DESCRIBE, _GROUP, "groups"),),
    21: (Need(_OP.DELETE, _TOPIC, "topics"),),
    28: (Need(_OP.READ, _TOPIC, "topics"),),
    37: (Need(_OP.ALTER, _TOPIC, "topics"),),
    42: (Need(_OP.DELETE, _GROUP, "groups_names"),),
    61: (Need(_OP.READ, _TOPIC, "topics"),),
    69: (Need(_OP.DESCRIBE, _GROUP, "group_ids"),),
}

_DESCRIBE_GROUPS = (15, 69)

FREE = frozenset({17, 18, 36})
"""Requests that need nothing."""


class GuardedHandlers(Mapping[int, "Handler"]):
    """The handlers of a broker behind the rules. A handler is looked up anew for every request."""

    def __init__(self, handlers: Mapping[int, Handler], rules: AclRules) -> None:
        self._handlers = handlers
        self._rules = rules

    def __getitem__(self, api_key: int) -> Handler:
        handler = self._handlers[api_key]
        if api_key in FREE:
            return handler

        async def handle(request: Request, context: RequestContext) -> Answer:
            return await guarded(Client(self._rules, context), request, handler.handle)

        return handler._replace(handle=handle)

    def __iter__(self) -> Iterator[int]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)


async def guarded(client: Client, request: Request, proceed: Proceed) -> Answer:
    """Answer what the client may ask, and refuse the rest."""
    from restow.cluster.security.guard_rules import SPECIAL

    key, context = request.api_key, client.context
    for need in WHOLE.get(key, ()):
        name = getattr(request.body, need.field) if need.field else CLUSTER_NAME
        if name is not None and not client.may(need.operation, need.resource, name):
            return await error_answer(request, context, CODES[need.resource], None, proceed)
    if key in SPECIAL:
        answer: Answer = await SPECIAL[key](client, request, proceed)
        return answer
    for need in ELEMENTS.get(key, ()):
        denied = [
            each
            for each in getattr(request.body, need.field) or ()
            if (name := _name(each, context)) is not None
            and not client.may(need.operation, need.resource, name)
        ]
        if denied:
            proceed = without(need.field, denied, CODES[need.resource], proceed)
    if key in _DESCRIBE_GROUPS and request.body.include_authorized_operations:
        return await _described_groups(client, request, proceed)
    return await proceed(request, context)


async def _described_groups(client: Client, request: Request, proceed: Proceed) -> Answer:
    """Tell what the client may do to each group that it may describe, in key 69 as a bit field."""
    answer: Any = await handled(request, client.context, proceed)
    for each in answer.groups:
        if not each.error_code:
            allowed = {
                number for number in ON_GROUPS if client.may(AclOperation(number), _GROUP, each.group_id)
            }
            each.authorized_operations = allowed if request.api_key == _DESCRIBE_GROUPS[0] else bits(allowed)
    described: Answer = answer
    return described


def without(field: str, denied: list[Any], code: ErrorCode, proceed: Proceed) -> Proceed:
    """Return a handler that refuses these elements of a list, and lets `proceed` handle the others."""

    async def handle(request: Request, context: RequestContext) -> Any:
        asked, rest = copy.copy(request.body), copy.copy(request.body)
        others = [each for each in getattr(request.body, field) if not any(each is no for no in denied)]
        setattr(asked, field, denied)
        setattr(rest, field, others)
        refused: Any = await error_answer(request._replace(body=asked), context, code, None, proceed)
        if not others:
            return refused
        answer = await handled(request._replace(body=rest), context, proceed)
        for name in lists_answered(request.api_key, field):
            setattr(answer, name, [*(getattr(answer, name) or ()), *(getattr(refused, name) or ())])
        return answer

    return handle


def _name(element: Any, context: RequestContext) -> str | None:
    return element if isinstance(element, str) else topic_of(element, context)
