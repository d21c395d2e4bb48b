"""The requests to one broker for each table, and the columns made from its answers.

A broker that does not answer causes no error: a `Gap` says what is missing. The sample does not ask it again,
and gets its share of the assignment, which all brokers know, from another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from restow._frozen import frozen
from restow.client import BrokerError, ConsumerGroup, OffsetRange, Unreachable, connected
from restow.pipeline.schemas import ASSIGNMENT, AT, CLUSTER, DISKS, GROUPS, OFFSETS, REPLICAS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from restow.client import BrokerLogDirs, ConnectionSettings, KafkaAdmin
    from restow.client.values import Committed
    from restow.model import Topic
    from restow.pipeline.sampling.shares import Share
    from restow.runtime.clock import Clock

Columns: TypeAlias = "Mapping[str, Sequence[object]]"
Answer: TypeAlias = "tuple[Mapping[str, Columns], Sequence[str]]"
"""Columns by table, and the names of things without an answer."""

_GROUP_COLUMNS = tuple(name for name in GROUPS.names if name not in (CLUSTER, AT))
_NOBODY_LEADS = -1
_NAMED = 3
"""A gap names at most this many things."""


@frozen
class Part:
    """Rows of one table from one answer."""

    table: str
    at_ms: int
    columns: Columns


@frozen
class Gap:
    """The missing part of one broker's rows, and why."""

    tables: tuple[str, ...]
    at_ms: int
    broker: int
    reason: str

    @property
    def told(self) -> str:
        return f"{', '.join(self.tables)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _Question:
    ask: Callable[[KafkaAdmin, Share], Awaitable[Answer]]
    tables: tuple[str, ...]


async def ask(
    settings: ConnectionSettings, share: Share, tables: Collection[str], clock: Clock
) -> list[Part | Gap]:
    """Ask the share's broker for these tables, over a connection of its own."""
    questions = _questions(tables)
    found: list[Part | Gap] = []
    if share.problem:
        return unanswered(share, tables, clock)
    own = replace(settings, bootstrap=share.address)
    try:
        async with connected(own) as admin:
            while questions:
                found += await _asked(admin, share, questions[0], tables, clock)
                del questions[0]
    except Unreachable as error:
        if _ASSIGNMENT in questions:
            questions.remove(_ASSIGNMENT)
            found += await _asked_of_another(settings, share, clock)
        if questions:
            found.append(_gap(questions, tables, share, str(error), clock))
    return found


async def ask_over(
    admin: KafkaAdmin, share: Share, tables: Collection[str], clock: Clock
) -> list[Part | Gap]:
    """Ask the share's broker for these tables, over a shared connection to the whole cluster.

    The assignment comes from any broker that answers.
    """
    questions = _questions(tables)
    found: list[Part | Gap] = []
    lacking: list[_Question] = []
    reason = ""
    for question in questions:
        if lacking and question is not _ASSIGNMENT:
            lacking.append(question)
            continue
        try:
            found += await _asked(admin, share, question, tables, clock)
        except Unreachable as error:
            lacking.append(question)
            reason = reason or str(error)
    if lacking:
        found.append(_gap(lacking, tables, share, reason, clock))
    return found


def unanswered(share: Share, tables: Collection[str], clock: Clock) -> list[Part | Gap]:
    """Return the gaps of a share whose broker could not be reached."""
    return [_gap(_questions(tables), tables, share, share.problem, clock)]


def _questions(tables: Collection[str]) -> list[_Question]:
    return [each for each in _QUESTIONS if not set(each.tables).isdisjoint(tables)]


async def _asked(
    admin: KafkaAdmin, share: Share, question: _Question, tables: Collection[str], clock: Clock
) -> list[Part | Gap]:
    try:
        answer, lacking = await question.ask(admin, share)
    except BrokerError as error:
        return [_gap([question], tables, share, str(error), clock)]
    at_ms = clock.now_ms()
    found: list[Part | Gap] = [
        Part(table=table, at_ms=at_ms, columns=columns)
        for table, columns in answer.items()
        if table in tables
    ]
    if lacking:
        others = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
        found.append(_gap([question], tables, share, "; ".join(lacking[:_NAMED]) + others, clock))
    return found


async def _asked_of_another(settings: ConnectionSettings, share: Share, clock: Clock) -> list[Part | Gap]:
    try:
        async with connected(settings) as admin:
            return await _asked(admin, share, _ASSIGNMENT, _ASSIGNMENT.tables, clock)
    except Unreachable as error:
        return [_gap([_ASSIGNMENT], _ASSIGNMENT.tables, share, str(error), clock)]


def _gap(
    questions: Iterable[_Question], tables: Collection[str], share: Share, reason: str, clock: Clock
) -> Gap:
    lacking = chain.from_iterable(question.tables for question in questions)
    return Gap(
        tables=tuple(table for table in lacking if table in tables),
        at_ms=clock.now_ms(),
        broker=share.broker,
        reason=reason,
    )


async def _log_dirs(admin: KafkaAdmin, share: Share) -> Answer:
    disks = (await admin.describe_log_dirs([share.broker]))[share.broker]
    if isinstance(disks, BrokerError):
        raise _as_it_was(disks)
    return {DISKS.name: _disks(disks), REPLICAS.name: _replicas(disks, share.topic_ids)}, ()


def _as_it_was(error: BrokerError) -> BrokerError | Unreachable:
    """Return `Unreachable` for a broker that did not answer: it is the only one asked."""
    return Unreachable(str(error)) if error.code.name == "BROKER_NOT_AVAILABLE" else error


def _disks(disks: BrokerLogDirs) -> Columns:
    return {
        "log_dir": [each.path for each in disks.log_dirs],
        "total": [each.total_bytes for each in disks.log_dirs],
        "usable": [each.usable_bytes for each in disks.log_dirs],
        "error": ["the log dir has failed" if each.failed else None for each in disks.log_dirs],
    }


def _replicas(disks: BrokerLogDirs, topic_ids: Mapping[str, str]) -> Columns:
    return {
        "log_dir": [each.log_dir for each in disks.replicas],
        "topic": [each.partition.topic for each in disks.replicas],
        "topic_id": [topic_ids.get(each.partition.topic) for each in disks.replicas],
        "partition": [each.partition.partition for each in disks.replicas],
        "size": [each.size_bytes for each in disks.replicas],
        "offset_lag": [each.lag_messages for each in disks.replicas],
        "is_future": [each.future for each in disks.replicas],
    }


async def _offsets(admin: KafkaAdmin, share: Share) -> Answer:
    answers = await admin.list_offsets(share.broker, share.led())
    found = {which: each for which, each in answers.items() if isinstance(each, OffsetRange)}
    columns: Columns = {
        "topic": [topic for topic, _ in found],
        "partition": [number for _, number in found],
        "leader_epoch": [each.leader_epoch for each in found.values()],
        "earliest": [each.earliest for each in found.values()],
        "latest": [each.latest for each in found.values()],
    }
    return {OFFSETS.name: columns}, _errors(
        (f"{topic}-{number}", answer) for (topic, number), answer in answers.items()
    )


async def _assignment(admin: KafkaAdmin, share: Share) -> Answer:
    topics: tuple[Topic, ...] = ()
    lacking: Sequence[str] = ()
    if share.topics:
        everything = {topic.name: topic for topic in await _topics(admin, share.topics)}
        topics = tuple(everything.values())
        lacking = [f"{name}: it is gone" for name in share.topics if name not in everything]
    rows = [(topic, each) for topic in topics for each in topic.partitions]
    columns: Columns = {
        "topic": [topic.name for topic, _ in rows],
        "topic_id": [topic.id for topic, _ in rows],
        "partition": [each.number for _, each in rows],
        "leader": [_NOBODY_LEADS if each.leader is None else each.leader for _, each in rows],
        "replicas": [each.replicas for _, each in rows],
        "isr": [each.isr for _, each in rows],
    }
    return {ASSIGNMENT.name: columns}, lacking


async def _topics(admin: KafkaAdmin, names: Sequence[str]) -> tuple[Topic, ...]:
    """Describe topics. If one was deleted meanwhile, describe all topics and pick the others."""
    try:
        return await admin.describe_topics(names)
    except BrokerError:
        wanted = frozenset(names)
        return tuple(topic for topic in await admin.describe_topics() if topic.name in wanted)


async def _groups(admin: KafkaAdmin, share: Share) -> Answer:
    answers = await admin.describe_consumer_groups(share.broker)
    found = [each for each in answers.values() if isinstance(each, ConsumerGroup)]
    committed = await admin.list_consumer_group_offsets(share.broker, [group.name for group in found])
    rows = list(chain.from_iterable(_rows(group, committed.get(group.name)) for group in found))
    columns: Columns = {name: [row[at] for row in rows] for at, name in enumerate(_GROUP_COLUMNS)}
    return {GROUPS.name: columns}, _errors(chain(answers.items(), committed.items()))


def _rows(group: ConsumerGroup, committed: Committed | BrokerError | None) -> Iterator[tuple[object, ...]]:
    """Yield assigned partitions, then partitions with only a commit, then members without partitions."""
    offsets = {} if committed is None or isinstance(committed, BrokerError) else dict(committed)
    head = group.name, group.state, group.assignor
    for member in group.members:
        about = member.id, member.client_id, member.rack, member.topics
        for which in member.held:
            yield *head, *about, *which, offsets.pop(which, None)
        if not member.held:
            yield *head, *about, None, None, None
    for which, offset in offsets.items():
        yield *head, None, None, None, None, *which, offset


def _errors(answers: Iterable[tuple[str, object]]) -> list[str]:
    return [f"{name}: {answer}" for name, answer in answers if isinstance(answer, BrokerError)]


_ASSIGNMENT = _Question(_assignment, (ASSIGNMENT.name,))
_QUESTIONS = (
    _Question(_log_dirs, (DISKS.name, REPLICAS.name)),
    _Question(_offsets, (OFFSETS.name,)),
    _Question(_groups, (GROUPS.name,)),
    _ASSIGNMENT,
)
