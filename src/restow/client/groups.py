"""Consumer groups over the wire: members, subscriptions and assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client.errors import BrokerError
from restow.client.link import Requests
from restow.client.values import ConsumerGroup, GroupMember
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DescribeGroupsRequest,
    ListGroupsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from restow.model import BrokerId
    from restow.wire.messages import Message

_CLASSIC = "classic"
_CONSUMER = "consumer"
_CLASSIC_MEMBER = 0
"""The type of a member; brokers before 4.1 do not tell it, and it is -1 then."""
_GROUPS_AT_ONCE = 100


class GroupRequests(Requests):
    """Requests about consumer groups, to one broker. `Unreachable` is raised if it does not answer."""

    async def list_consumer_groups(self, broker: BrokerId) -> Mapping[str, ConsumerGroup]:
        """Return the consumer groups of all protocols that a broker coordinates, without their members."""
        answer = await self._link.ask(ListGroupsRequest(states_filter=[], types_filter=[]), broker)
        BrokerError.check(answer.error_code)
        return {
            each.group_id: ConsumerGroup(
                name=each.group_id, state=each.group_state or "Unknown", protocol=_type(each)
            )
            for each in sorted(answer.groups, key=lambda each: str(each.group_id))
            if each.protocol_type in {_CONSUMER, ""}
        }

    async def describe_consumer_groups(
        self, broker: BrokerId, names: Collection[str] | None = None
    ) -> Mapping[str, ConsumerGroup | BrokerError]:
        """Return the consumer groups of both protocols that a broker coordinates, without other groups.

        With names, only those of them that it coordinates.
        """
        listed = await self.list_consumer_groups(broker)
        wanted = {name: each for name, each in listed.items() if names is None or name in names}
        found: dict[str, ConsumerGroup | BrokerError] = dict(wanted)
        for some in _pieces([name for name, each in wanted.items() if each.protocol == _CLASSIC]):
            described = await self._link.ask(DescribeGroupsRequest(groups=some), broker)
            found.update({each.group_id: _group(each) for each in described.groups})
        for some in _pieces([name for name, each in wanted.items() if each.protocol == _CONSUMER]):
            described = await self._link.ask(ConsumerGroupDescribeRequest(group_ids=some), broker)
            found.update({each.group_id: _consumer_group(each) for each in described.groups})
        return found


def _type(listed: Message) -> str:
    """Return a group's protocol. Brokers that do not report it have classic groups only."""
    return (listed.group_type or _CLASSIC).lower()


def _pieces(names: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(names), _GROUPS_AT_ONCE):
        yield names[first : first + _GROUPS_AT_ONCE]


def _consumer_group(described: Message) -> ConsumerGroup | BrokerError:
    """Return a group of the protocol `consumer`, with what its members hold at present."""
    if error := BrokerError.of(described.error_code):
        return error
    return ConsumerGroup(
        name=described.group_id,
        state=described.group_state,
        protocol=_CONSUMER,
        epoch=described.group_epoch,
        assignor=described.assignor_name or None,
        members=tuple(
            GroupMember(
                id=each.member_id,
                client_id=each.client_id,
                host=each.client_host,
                instance_id=each.instance_id,
                rack=each.rack_id or None,
                topics=_subscribed(each),
                held=_partitions(_by_topic(each.assignment)),
                protocol=_CLASSIC if each.member_type == _CLASSIC_MEMBER else _CONSUMER,
                epoch=each.member_epoch,
                target=_partitions(_by_topic(each.target_assignment)),
            )
            for each in described.members
        ),
    )


def _by_topic(assignment: Message) -> dict[str, list[int]]:
    return {each.topic_name: each.partitions for each in assignment.topic_partitions}


def _subscribed(described: Message) -> tuple[str, ...]:
    """Return a member's topics: those it names, and those it was given through a regular expression."""
    given = described.target_assignment.topic_partitions if described.subscribed_topic_regex else ()
    return tuple(sorted({*described.subscribed_topic_names, *(each.topic_name for each in given)}))


def _partitions(held: Mapping[str, Iterable[int]]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic, number) for topic, numbers in sorted(held.items()) for number in sorted(numbers)
    )


def _group(described: Message) -> ConsumerGroup | BrokerError:
    if error := BrokerError.of(described.error_code):
        return error
    try:
        members = tuple(_member(each) for each in described.members)
    except Exception as error:  # noqa: BLE001  (the library raises all sorts on bytes that are no such thing)
        return BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"group {described.group_id!r}: what its members said cannot be read ({error})",
        )
    return ConsumerGroup(
        name=described.group_id,
        state=described.group_state,
        assignor=described.protocol_data or None,
        members=members,
    )


def _member(described: Message) -> GroupMember:
    """Return a member. While a group rebalances, members have neither subscription nor assignment."""
    said = described.member_metadata
    holds = described.member_assignment
    subscription = ConsumerProtocolSubscription.decode(said) if said else None
    held: Mapping[str, list[int]] = (
        {each.topic: each.partitions for each in ConsumerProtocolAssignment.decode(holds).assigned_partitions}
        if holds
        else {}
    )
    return GroupMember(
        id=described.member_id,
        client_id=described.client_id,
        host=described.client_host,
        instance_id=described.group_instance_id,
        rack=(getattr(subscription, "rack_id", None) or None) if subscription else None,
        topics=tuple(sorted(subscription.topics)) if subscription else None,
        held=_partitions(held),
    )
