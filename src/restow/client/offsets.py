"""Offsets over the wire: the ranges of partitions, and the committed offsets of groups."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from restow.client.errors import BrokerError
from restow.client.link import Requests
from restow.client.values import OffsetRange
from restow.model import TopicPartition
from restow.wire.messages import ApiVersionsRequest, ListOffsetsRequest, OffsetFetchRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from restow.client.link import Link
    from restow.client.values import Committed
    from restow.model import BrokerId
    from restow.wire.messages import Message

T = TypeVar("T")

_EARLIEST, _LATEST = -2, -1
_CONSUMER = -1
_OFFSET_FETCH = 9
_FIRST_WITH_GROUPS, _LAST_WITH_NAMES = 8, 9
"""Versions of OffsetFetch: the first with several groups, and the last with topic names."""
_GROUPS_AT_ONCE = 100
_PARTITIONS_AT_ONCE = 5_000


class OffsetRequests(Requests):
    """Requests about offsets, to one broker. `Unreachable` is raised if it does not answer."""

    async def list_offsets(
        self, broker: BrokerId, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetRange | BrokerError]:
        """Return the offsets of partitions that the broker leads; one that it does not lead has an error.

        The end is requested last, so that it is never before the start. A request with a partition twice is
        refused, hence two requests.
        """
        found: dict[TopicPartition, OffsetRange | BrokerError] = {}
        for some in _pieces(partitions, _PARTITIONS_AT_ONCE):
            earliest = await _ask(self._link, broker, dict.fromkeys(some, _EARLIEST))
            latest = await _ask(self._link, broker, dict.fromkeys(some, _LATEST))
            for which in some:
                begin, end = earliest.get(which), latest.get(which)
                if begin is None or end is None:
                    continue
                code = begin.error_code or end.error_code
                found[which] = BrokerError.of(code) or OffsetRange(
                    earliest=begin.offset,
                    latest=end.offset,
                    leader_epoch=end.leader_epoch if end.leader_epoch >= 0 else None,
                )
        return found

    async def offsets_for_times(
        self, broker: BrokerId, moments_ms: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int | None]:
        """Return the first offset whose record is not older than that moment; None if there is none.

        Partitions that the broker does not lead are left out.
        """
        found: dict[TopicPartition, int | None] = {}
        for some in _pieces(moments_ms, _PARTITIONS_AT_ONCE):
            answer = await _ask(self._link, broker, {which: moments_ms[which] for which in some})
            found |= {
                which: each.offset if each.offset >= 0 else None
                for which, each in answer.items()
                if not each.error_code
            }
        return found

    async def list_consumer_group_offsets(
        self, broker: BrokerId, names: Iterable[str]
    ) -> Mapping[str, Committed | BrokerError]:
        """Return all committed offsets of these groups, from their coordinator."""
        groups = tuple(names)
        if not groups:
            return {}
        known = await self._link.ask(ApiVersionsRequest(max_version=2), broker)
        newest = next((each.max_version for each in known.api_keys if each.api_key == _OFFSET_FETCH), 0)
        if newest < _FIRST_WITH_GROUPS:
            return {group: await _committed_by(self._link, broker, group) for group in groups}
        found: dict[str, Committed | BrokerError] = {}
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup
        for some in _pieces(groups, _GROUPS_AT_ONCE):
            request = OffsetFetchRequest(
                groups=[wanted(group_id=group, topics=None) for group in some],
                min_version=_FIRST_WITH_GROUPS,
                max_version=_LAST_WITH_NAMES,
            )
            answer = await self._link.ask(request, broker)
            for each in answer.groups:
                found[each.group_id] = BrokerError.of(each.error_code) or _offsets(each.topics)
        return found


async def _ask(
    link: Link, broker: BrokerId, moments_ms: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Message]:
    topic = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Message]] = {}
    for (name, number), moment in moments_ms.items():
        wanted = topic.ListOffsetsPartition(partition_index=number, timestamp=moment, current_leader_epoch=-1)
        by_topic.setdefault(name, []).append(wanted)
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=0,
        topics=[topic(name=name, partitions=wanted) for name, wanted in by_topic.items()],
        timeout_ms=link.timeout_ms,
        min_version=1,
    )
    answer = await link.ask(request, broker)
    return {
        TopicPartition(each.name, one.partition_index): one
        for each in answer.topics
        for one in each.partitions
    }


async def _committed_by(link: Link, broker: BrokerId, group: str) -> Committed | BrokerError:
    request = OffsetFetchRequest(
        group_id=group, topics=None, min_version=2, max_version=_FIRST_WITH_GROUPS - 1
    )
    answer = await link.ask(request, broker)
    return BrokerError.of(answer.error_code) or _offsets(answer.topics)


def _offsets(topics: Iterable[Message]) -> Committed:
    """Return the offsets, without partitions that have none."""
    return {
        TopicPartition(topic.name, each.partition_index): each.committed_offset
        for topic in topics
        for each in topic.partitions
        if not each.error_code and each.committed_offset >= 0
    }


def _pieces(whole: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    rest = iter(whole)
    while piece := tuple(islice(rest, size)):
        yield piece
