"""The response to a request with an error in it, in the shape of the request's version.

`Echo` says which list of a response repeats which list of the request, as Kafka's responses do. The error is
put into every element that has room for one, and at the top level where the response has it. A Fetch differs:
Kafka names errors of a fetch session at the top level and all others with their partitions.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from restow.cluster.faults.asked import METADATA, TOPIC_LISTS, asks_for_all_topics, partitions_of, topic_of
from restow.cluster.handlers import HangUp
from restow.cluster.handlers.k18_api_versions import refusal
from restow.cluster.replication.values import FINAL_EPOCH, NO_SESSION
from restow.wire.codec import API_VERSIONS, FETCH, PRODUCE
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    RESPONSES,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsResponse,
    FetchResponse,
    MetadataRequest,
    StopReplicaResponse,
)
from restow.wire.reader import reader_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.faults.requests import Proceed
    from restow.cluster.handlers import Answer
    from restow.wire.codec import Request
    from restow.wire.messages import Message

_ITSELF = ""
"""Stands for the element of a list of plain values."""
_OF_FETCH_SESSIONS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Echo(NamedTuple):
    """A list in a response with one element for each element of a list in the request."""

    answered: str
    asked: str
    fields: Mapping[str, str]
    """Fields of an answered element, and those of the asked one from which they are copied."""
    fixed: Mapping[str, Any] = {}
    """Fields whose protocol default is not what Kafka sends beside an error."""
    inside: Echo | None = None


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_INDEX = _same("partition_index")
_NUMBERED = {"partition_index": _ITSELF}
"""A partition in a list of bare numbers."""
_ADDED_TO_TXN = Echo("results_by_partition", "partitions", _NUMBERED)
_RESOURCES = Echo("responses", "resources", _same("resource_type", "resource_name"))
_ECHOES: dict[int, tuple[Echo, ...]] = {
    PRODUCE: (
        Echo(
            "responses",
            "topic_data",
            _same("name"),
            inside=Echo("partition_responses", "partition_data", _same("index"), {"base_offset": -1}),
        ),
    ),
    2: (
        Echo(
            "topics",
            "topics",
            _same("name"),
            inside=Echo("partitions", "partitions", _INDEX, {"offset": -1, "timestamp": -1}),
        ),
    ),
    METADATA: (Echo("topics", "topics", _same("name", "topic_id")),),
    4: (
        Echo(
            "topics",
            "topic_states",
            _same("topic_id"),
            inside=Echo("partition_errors", "partition_states", _INDEX),
        ),
    ),
    8: (Echo("topics", "topics", _same("name"), inside=Echo("partitions", "partitions", _INDEX)),),
    9: (
        Echo(
            "topics",
            "topics",
            _same("name"),
            inside=Echo("partitions", "partition_indexes", _NUMBERED, {"committed_offset": -1}),
        ),
        Echo("groups", "groups", _same("group_id")),
    ),
    10: (Echo("coordinators", "coordinator_keys", {"key": _ITSELF}, {"node_id": -1, "port": -1}),),
    15: (Echo("groups", "groups", {"group_id": _ITSELF}),),
    19: (Echo("topics", "topics", _same("name"), {"num_partitions": -1, "replication_factor": -1}),),
    20: (
        Echo("responses", "topic_names", {"name": _ITSELF}),
        Echo("responses", "topics", _same("name", "topic_id")),
    ),
    21: (
        Echo(
            "topics",
            "topics",
            _same("name"),
            inside=Echo("partitions", "partitions", _INDEX, {"low_watermark": -1}),
        ),
    ),
    23: (
        Echo(
            "topics",
            "topics",
            _same("topic"),
            inside=Echo("partitions", "partitions", _same("partition"), {"end_offset": -1}),
        ),
    ),
    24: (
        Echo(
            "results_by_transaction",
            "transactions",
            _same("transactional_id"),
            inside=Echo("topic_results", "topics", _same("name"), inside=_ADDED_TO_TXN),
        ),
        Echo("results_by_topic_v3_and_below", "v3_and_below_topics", _same("name"), inside=_ADDED_TO_TXN),
    ),
    27: (
        Echo(
            "markers",
            "markers",
            _same("producer_id"),
            inside=Echo(
                "topics",
                "topics",
                _same("name"),
                inside=Echo("partitions", "partition_indexes", _NUMBERED),
            ),
        ),
    ),
    28: (Echo("topics", "topics", _same("name"), inside=Echo("partitions", "partitions", _INDEX)),),
    30: (Echo("results", "creations", {}),),
    31: (Echo("filter_results", "filters", {}),),
    32: (Echo("results", "resources", _same("resource_type", "resource_name")),),
    33: (_RESOURCES,),
    37: (Echo("results", "topics", _same("name")),),
    42: (Echo("results", "groups_names", {"group_id": _ITSELF}),),
    43: (
        Echo(
            "replica_election_results",
            "topic_partitions",
            _same("topic"),
            inside=Echo("partition_result", "partitions", {"partition_id": _ITSELF}),
        ),
    ),
    44: (_RESOURCES,),
    45: (Echo("responses", "topics", _same("name"), inside=Echo("partitions", "partitions", _INDEX)),),
    47: (Echo("topics", "topics", _same("name"), inside=Echo("partitions", "partitions", _INDEX)),),
    49: (
        Echo("entries", "entries", {}, inside=Echo("entity", "entity", _same("entity_type", "entity_name"))),
    ),
    51: (
        Echo("results", "deletions", {"user": "name"}),
        Echo("results", "upsertions", {"user": "name"}),
    ),
    61: (Echo("topics", "topics", _same("name"), inside=Echo("partitions", "partition_indexes", _NUMBERED)),),
    65: (Echo("transaction_states", "transactional_ids", {"transactional_id": _ITSELF}),),
    69: (Echo("groups", "group_ids", {"group_id": _ITSELF}),),
    75: (Echo("topics", "topics", _same("name")),),
}
_FIXED: dict[int, Mapping[str, Any]] = {
    10: {"node_id": -1, "port": -1},
    11: {"generation_id": -1, "protocol_name": ""},
    22: {"producer_id": -1, "producer_epoch": -1},
    48: {"entries": None},
}
"""Fields at the top level whose protocol default is not what Kafka sends beside an error."""
_COPIED = {11: ("member_id",)}
_STOP_REPLICA = 5
_OFFSET_FETCH = 9
_ALTER_REPLICA_LOG_DIRS = 34
_DESCRIBE_LOG_DIRS = 35
_FIRST_WITH_GROUP_ERROR = 2
_FIRST_WITH_LOG_DIR_ERROR = 3
_FIRST_FETCH_BY_ID = 13
_FIRST_METADATA_WITHOUT_TOPICS = 1


async def error_answer(
    request: Request, context: RequestContext, code: ErrorCode, topic: str | None, proceed: Proceed
) -> Answer:
    """Return the response with the error. With a topic, the request's other topics are handled as ever."""
    key = request.api_key
    if key == PRODUCE and request.body.acks == 0:
        raise HangUp("a batch without acks is refused, and a closed connection is the only sign of that")
    if key == API_VERSIONS and code is ErrorCode.UNSUPPORTED_VERSION:
        return (refusal().encode(version=0),)
    topics = None if topic is None else frozenset({topic})
    if key == FETCH:
        return await fetch_answer(request, context, code, topics, proceed)
    asked, rest = _split(request, context, topics)
    if rest is None:
        answer = RESPONSES[key](**_FIXED.get(key, {}))
        for name in _COPIED.get(key, ()):
            setattr(answer, name, getattr(asked, name))
        _put_error(answer, code)
    else:
        answer = await handled(rest, context, proceed)
    if key == _STOP_REPLICA:
        answer.partition_errors = _stopped(asked, code)
    elif key == _ALTER_REPLICA_LOG_DIRS:
        answer.results = _moved(asked, code)
    elif key == _DESCRIBE_LOG_DIRS and request.api_version < _FIRST_WITH_LOG_DIR_ERROR:
        answer.results = _described(context, code)
    elif key == _OFFSET_FETCH and request.api_version >= _FIRST_WITH_GROUP_ERROR:
        asked.topics = None  # the error is the group's, and its topics are left out
    for echo in _ECHOES.get(key, ()):
        _append(answer, echo, asked, code)
    return answer


def lists_answered(api_key: int, asked: str) -> tuple[str, ...]:
    """Return the lists of the response that repeat this list of the request."""
    return tuple(each.answered for each in _ECHOES.get(api_key, ()) if each.asked == asked)


def _append(answer: Message, echo: Echo, asked: Message, code: ErrorCode) -> None:
    """Add an element with the error for every element asked for."""
    element_class = type(answer).fields[echo.answered].data_class
    elements = list(getattr(answer, echo.answered) or ())
    for each in getattr(asked, echo.asked, None) or ():
        copied = {to: each if of == _ITSELF else getattr(each, of) for to, of in echo.fields.items()}
        made = element_class(**copied, **echo.fixed)
        _put_error(made, code)
        if echo.inside is not None:
            _append(made, echo.inside, each, code)
        elements.append(made)
    setattr(answer, echo.answered, elements)


def _put_error(place: Message, code: ErrorCode) -> None:
    fields = type(place).fields
    for name in ("error_code", "partition_error_code"):
        if name in fields:
            setattr(place, name, code)
    if "error_message" in fields:
        place.error_message = f"{code.message}."


def _split(
    request: Request, context: RequestContext, topics: frozenset[str] | None
) -> tuple[Message, Request | None]:
    """Return the part that gets the error, and a request for the rest if there is one.

    Metadata always has a rest: brokers are named beside the error, too.
    """
    asked = copy.copy(request.body)
    if request.api_key == METADATA:
        asked.topics = _metadata_topics(request, context)
    elif topics is None:
        return asked, None
    rest = copy.copy(asked)
    has_rest = request.api_key == METADATA
    for field in TOPIC_LISTS:
        elements = getattr(asked, field, None)
        if elements:
            others = [
                each for each in elements if topics is not None and topic_of(each, context) not in topics
            ]
            setattr(asked, field, [each for each in elements if each not in others])
            setattr(rest, field, others)
            has_rest = has_rest or bool(others)
    return asked, request._replace(body=rest) if has_rest else None


def _metadata_topics(request: Request, context: RequestContext) -> list[Message]:
    known = context.broker.metadata.topics
    if asks_for_all_topics(request):
        names = list(known)
    else:
        names = [name for each in request.body.topics if (name := topic_of(each, context)) is not None]
    kind = MetadataRequest.MetadataRequestTopic
    return [
        kind(name=name, topic_id=known[name].topic_id) if name in known else kind(name=name) for name in names
    ]


async def handled(request: Request, context: RequestContext, proceed: Proceed) -> Message:
    """Let the broker handle a request, and return the response's body as an object."""
    answer: Message = await proceed(request, context)
    if isinstance(answer, tuple):
        read = reader_of(RESPONSES[request.api_key], request.api_version)
        answer, _ = read(b"".join(answer), 0)
    if request.api_key == METADATA and request.api_version < _FIRST_METADATA_WITHOUT_TOPICS:
        wanted = {each.name for each in request.body.topics}
        answer.topics = [each for each in answer.topics if each.name in wanted]
    return answer


async def fetch_answer(
    request: Request,
    context: RequestContext,
    code: ErrorCode,
    topics: frozenset[str] | None,
    proceed: Proceed,
) -> Message:
    """Return the error for each partition of these topics, or of all for None.

    There is no session, so the client's next Fetch is a full one.
    """
    if code in _OF_FETCH_SESSIONS:
        return FetchResponse(error_code=code, responses=[])
    failing = [
        each for each in sorted(partitions_of(request, context)) if topics is None or each.topic in topics
    ]
    asked, rest = _split(request, context, topics)
    answer = FetchResponse(responses=[])
    if rest is not None and asked.session_epoch <= 0:
        rest.body.session_id, rest.body.session_epoch = NO_SESSION, FINAL_EPOCH
        rest.body.max_wait_ms = 0
        answer = await handled(rest, context, proceed)
    by_topic: dict[str, list[Message]] = {}
    topic_class = FetchResponse.FetchableTopicResponse
    for name, number in failing:
        by_topic.setdefault(name, []).append(
            topic_class.PartitionData(
                partition_index=number,
                error_code=code,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                records=b"",
            )
        )
    known = context.broker.metadata.topics
    for name, partitions in by_topic.items():
        named: dict[str, Any] = {"topic": name}
        if request.api_version >= _FIRST_FETCH_BY_ID:
            named = {"topic_id": known[name].topic_id}
        answer.responses.append(topic_class(**named, partitions=partitions))
    return answer


def _stopped(asked: Message, code: ErrorCode) -> list[Message]:
    kind = StopReplicaResponse.StopReplicaPartitionError
    return [
        kind(topic_name=topic.topic_name, partition_index=each.partition_index, error_code=code)
        for topic in asked.topic_states
        for each in topic.partition_states
    ]


def _moved(asked: Message, code: ErrorCode) -> list[Message]:
    kind = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    partition = kind.AlterReplicaLogDirPartitionResult
    return [
        kind(
            topic_name=topic.name,
            partitions=[partition(partition_index=number, error_code=code) for number in topic.partitions],
        )
        for directory in asked.dirs
        for topic in directory.topics
    ]


def _described(context: RequestContext, code: ErrorCode) -> list[Message]:
    kind = DescribeLogDirsResponse.DescribeLogDirsResult
    return [
        kind(error_code=code, log_dir=directory.path, topics=[])
        for directory in context.broker.logs.directories
    ]
