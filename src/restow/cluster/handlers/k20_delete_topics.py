"""DeleteTopics: delete topics with all their records. Served by the controller.

Behaviour: answers when the controller's broker has dropped them from its metadata, or with REQUEST_TIMED_OUT;
they are deleted even then.
Versions: 6 accepts topic ids.
Not supported: quotas for changes.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from restow.cluster.broker.topic_rules import TopicRefused, check_served_here, is_legal_name
from restow.cluster.controller import ControllerError, delete_topic
from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DeleteTopicsResponse, Message

_FIRST_BY_ID = 6
_NO_ID = UUID(int=0)


class _Doomed(NamedTuple):
    name: str | None
    topic_id: UUID


@handles(20, range(1, 7))
async def handle(request: Request, context: RequestContext) -> Message:
    body = request.body
    results: dict[_Doomed, TopicRefused | None] = {}
    for doomed in _asked(request, context):
        try:
            await _delete(doomed, context)
        except TopicRefused as refused:
            results[doomed] = refused
        else:
            results[doomed] = None
    topics = context.broker.metadata.topics
    deleted = [each for each, refused in results.items() if refused is None]
    gone = await context.broker.metadata.until(
        lambda: not any(each.name in topics for each in deleted), body.timeout_ms / 1000
    )
    if not gone:
        late = TopicRefused(ErrorCode.REQUEST_TIMED_OUT, "The topic is being deleted, but is not gone yet.")
        results |= {each: late for each in deleted if each.name in topics}
    return DeleteTopicsResponse(responses=[_result(*each) for each in results.items()])


def _asked(request: Request, context: RequestContext) -> list[_Doomed]:
    metadata = context.broker.metadata
    if request.api_version < _FIRST_BY_ID:
        named = [(name, _NO_ID) for name in request.body.topic_names]
    else:
        named = [
            (metadata.name_of(each.topic_id) if each.name is None else each.name, each.topic_id)
            for each in request.body.topics
        ]
    doomed = []
    for name, topic_id in named:
        known = metadata.topics.get(name) if name is not None else None
        doomed.append(_Doomed(name, known.topic_id or topic_id if known is not None else topic_id))
    return doomed


async def _delete(doomed: _Doomed, context: RequestContext) -> None:
    check_served_here(context.broker.controller)
    if doomed.name is None:
        raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_ID)
    if not context.broker.configs.delete_topic_enable:
        raise TopicRefused(ErrorCode.TOPIC_DELETION_DISABLED)
    if not is_legal_name(doomed.name):
        raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {doomed.name!r}.")
    try:
        await delete_topic(context.broker.store, doomed.name)
    except ControllerError as error:
        raise TopicRefused(error.code, f"{error}.") from error


def _result(doomed: _Doomed, refused: TopicRefused | None) -> Message:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=doomed.name,
        topic_id=doomed.topic_id,
        error_code=0 if refused is None else refused.code,
        error_message=None if refused is None else str(refused),
    )
