"""A history of client operations during faults, and the properties that it must have.

A history is a list of events. Every operation has one when it starts and at most one when it ends: `ok`, or
`unknown` if its outcome is not known. Afterwards, without faults, the whole log is read. `check` compares the
two and returns what is wrong.

    lost            acknowledged, but not in the log at the acknowledged offset
    duplicated      in the log twice
    reordered       a producer's values of one partition do not rise
    invented        in the log, but not written by any producer
    unstable        a consumer read a value at an offset where the log has another one
    non-monotonic   an offset read, a high watermark or a committed position went back
    forgotten       a group's position was below one that was committed or found before
    passed over     below the group's committed or found position, but read by no member

A commit without a response may have been carried out. A client that then finds the group there proves it, so
a found position counts like an acknowledged commit.

Nothing here uses a client, a clock or a file.
"""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Op(StrEnum):
    """The kind of operation."""

    WRITE = "write"
    READ = "read"
    COMMIT = "commit"
    RESUME = "resume"
    """A lookup of the group's position, by a starting member or a watcher."""
    WATERMARK = "watermark"
    FAULT = "fault"


class Kind(StrEnum):
    """The stage of an operation."""

    INVOKE = "invoke"
    OK = "ok"
    UNKNOWN = "unknown"


class Event(NamedTuple):
    """One stage of one operation. `number` identifies the client's operation."""

    at_s: float
    client: str
    op: Op
    kind: Kind
    number: int = 0
    partition: int = -1
    offset: int = -1
    """The record's offset, the committed position, or the high watermark."""
    value: str = ""


class Span(NamedTuple):
    """A successful operation, from its start to its end."""

    client: str
    partition: int
    offset: int
    began_s: float
    ended_s: float


FinalLog = dict[int, list[tuple[int, str]]]
"""By partition, every offset and its value, in the order of the log."""


def value_of(producer: str, number: int) -> str:
    """Return a producer's n-th value of a partition."""
    return f"{producer}:{number}"


def check(events: Sequence[Event], final: Mapping[int, Sequence[tuple[int, str]]], group: str) -> list[str]:
    """Return everything that is wrong. Clients named `group`/… are its members."""
    return [
        *_lost(events, final),
        *_duplicated(final),
        *_reordered(final),
        *_invented(events, final),
        *_unstable(events, final),
        *_reads_that_go_back(events),
        *_watermarks_that_go_back(events),
        *_commits_that_go_back(_spans(events, Op.COMMIT)),
        *_forgotten(_spans(events, Op.COMMIT), _spans(events, Op.RESUME), _ends_of_commits(events)),
        *_passed_over(events, final, group),
    ]


def _of(events: Iterable[Event], op: Op, kind: Kind) -> Iterator[Event]:
    return (each for each in events if each.op is op and each.kind is kind)


def _lost(events: Sequence[Event], final: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    """Yield acknowledged values that are missing. A repeated request may not know its offset (-1)."""
    by_offset = {partition: dict(entries) for partition, entries in final.items()}
    values = {partition: set(entries.values()) for partition, entries in by_offset.items()}
    for event in _of(events, Op.WRITE, Kind.OK):
        there = by_offset.get(event.partition, {})
        if event.value not in values.get(event.partition, ()):
            found = there.get(event.offset)
            yield f"lost: {event.value} was acknowledged at {_place(event)}, where {found} is"
        elif event.offset >= 0 and there.get(event.offset) != event.value:
            yield f"lost: {event.value} was acknowledged at {_place(event)}, but is elsewhere"


def _duplicated(final: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    for partition, entries in final.items():
        seen: dict[str, int] = {}
        for offset, value in entries:
            if value in seen:
                yield f"duplicated: {value} is in partition {partition} at {seen[value]} and at {offset}"
            seen[value] = offset


def _reordered(final: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    for partition, entries in final.items():
        last: dict[str, int] = {}
        for offset, value in entries:
            producer, _, number = value.rpartition(":")
            if int(number) < last.get(producer, -1):
                yield f"reordered: {value} at {partition}/{offset} comes behind {producer}:{last[producer]}"
            last[producer] = int(number)


def _invented(events: Sequence[Event], final: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    written = {(each.partition, each.value) for each in _of(events, Op.WRITE, Kind.INVOKE)}
    for partition, entries in final.items():
        for offset, value in entries:
            if (partition, value) not in written:
                yield f"invented: nobody wrote {value}, which is at {partition}/{offset}"


def _unstable(events: Sequence[Event], final: Mapping[int, Sequence[tuple[int, str]]]) -> Iterator[str]:
    by_offset = {partition: dict(entries) for partition, entries in final.items()}
    for event in _of(events, Op.READ, Kind.OK):
        there = by_offset.get(event.partition, {}).get(event.offset)
        if there != event.value:
            yield f"unstable: {event.client} read {event.value} at {_place(event)}, where {there} is now"


def _reads_that_go_back(events: Sequence[Event]) -> Iterator[str]:
    """Yield reads out of order: from its start on, a client reads every offset once and in order."""
    last: dict[tuple[str, int], int] = {}
    for event in events:
        key = event.client, event.partition
        if event.op is Op.RESUME:
            last.pop(key, None)
        elif event.op is Op.READ and event.kind is Kind.OK:
            if event.offset <= last.get(key, -1):
                yield f"non-monotonic: {event.client} read {_place(event)} after {last[key]}"
            last[key] = event.offset


def _watermarks_that_go_back(events: Sequence[Event]) -> Iterator[str]:
    last: dict[tuple[str, int], int] = {}
    for event in _of(events, Op.WATERMARK, Kind.OK):
        key = event.client, event.partition
        if event.offset < last.get(key, -1):
            yield f"non-monotonic: the high watermark {_place(event)} came after {last[key]} ({event.client})"
        last[key] = event.offset


def _spans(events: Sequence[Event], op: Op) -> dict[int, list[Span]]:
    """Return the successful operations by partition, in the order of their ends."""
    begun: dict[tuple[str, int], float] = {}
    found: dict[int, list[Span]] = defaultdict(list)
    for event in events:
        if event.op is not op:
            continue
        if event.kind is Kind.INVOKE:
            begun[event.client, event.number] = event.at_s
        elif event.kind is Kind.OK:
            began_s = begun[event.client, event.number]
            found[event.partition].append(
                Span(event.client, event.partition, event.offset, began_s, event.at_s)
            )
    return {partition: sorted(spans, key=lambda span: span.ended_s) for partition, spans in found.items()}


def _highest_before(commits: Sequence[Span], moment_s: float) -> Span | None:
    return max(
        (each for each in commits if each.ended_s < moment_s), key=lambda each: each.offset, default=None
    )


def _commits_that_go_back(commits: Mapping[int, list[Span]]) -> Iterator[str]:
    """Yield commits that went back. The later of two commits started after the other ended."""
    for partition, spans in commits.items():
        for span in spans:
            before = _highest_before(spans, span.began_s)
            if before is not None and span.offset < before.offset:
                yield (
                    f"non-monotonic: {span.client} committed {span.offset} of partition {partition} "
                    f"after {before.client} had committed {before.offset}"
                )


def _ends_of_commits(events: Sequence[Event]) -> dict[tuple[int, int], float]:
    """By partition and position, return until when its commit may be carried out: for ever if unknown.

    A client without a response repeats the request, after others that it sent meanwhile.
    """
    ends: dict[tuple[int, int], float] = {}
    for event in events:
        if event.op is Op.COMMIT and event.kind is not Kind.UNKNOWN:
            until = inf if event.kind is Kind.INVOKE else event.at_s
            ends[event.partition, event.offset] = until
    return ends


def _forgotten(
    commits: Mapping[int, list[Span]],
    resumes: Mapping[int, list[Span]],
    ends: Mapping[tuple[int, int], float],
) -> Iterator[str]:
    """Yield positions that are neither the last commit nor a concurrent one.

    A position must not be below an earlier found one, unless a commit since then may have set it.
    """
    for partition, spans in resumes.items():
        for how, known in (("committed", commits.get(partition, [])), ("found it at", spans)):
            for span in spans:
                before = _highest_before(known, span.began_s)
                if before is None or ends.get((partition, span.offset), -inf) >= before.began_s:
                    continue
                if span.offset < before.offset:
                    yield (
                        f"forgotten: {span.client} found the group at {partition}/{span.offset}, "
                        f"though {before.client} had {how} {before.offset}"
                    )


def _passed_over(
    events: Sequence[Event], final: Mapping[int, Sequence[tuple[int, str]]], group: str
) -> Iterator[str]:
    read: dict[int, set[int]] = defaultdict(set)
    position: dict[int, int] = defaultdict(int)
    for event in events:
        if event.client.startswith(f"{group}/") and event.kind is Kind.OK:
            if event.op is Op.READ:
                read[event.partition].add(event.offset)
            elif event.op in (Op.COMMIT, Op.RESUME):
                position[event.partition] = max(position[event.partition], event.offset)
    for partition, entries in final.items():
        for offset, value in entries:
            if offset < position[partition] and offset not in read[partition]:
                yield f"passed over: nobody in {group} read {value} at {partition}/{offset}"


def _place(event: Event) -> str:
    return f"{event.partition}/{event.offset}"
