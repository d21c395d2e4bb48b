"""Consumer groups over the wire: members, subscriptions and assignments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client.errors import BrokerError
from restow.client.link import Requests
from restow.client.values import ConsumerGroup, GroupMember
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DescribeGroupsRequest,
    ListGroupsRequest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId
    from restow.wire.messages import Message

_CONSUMER = "consumer"
_GROUPS_AT_ONCE = 100


class GroupRequests(Requests):
    """Requests about consumer groups, to one broker. `Unreachable` is raised if it does not answer."""

    async def describe_consumer_groups(self, broker: BrokerId) -> Mapping[str, ConsumerGroup | BrokerError]:
        """Return the consumer groups that a broker coordinates, without other groups.

        Those of the newer protocol answer to other requests; only their state is returned.
        """
        answer = await self._link.ask(ListGroupsRequest(states_filter=[], types_filter=[]), broker)
        BrokerError.check(answer.error_code)
        listed = {each.group_id: each for each in answer.groups if each.protocol_type in {_CONSUMER, ""}}
        classic = [name for name, each in listed.items() if _is_classic(each)]
        found: dict[str, ConsumerGroup | BrokerError] = {
            name: ConsumerGroup(name=name, state=each.group_state or "Unknown")
            for name, each in listed.items()
            if not _is_classic(each)
        }
        for first in range(0, len(classic), _GROUPS_AT_ONCE):
            request = DescribeGroupsRequest(groups=classic[first : first + _GROUPS_AT_ONCE])
            described = await self._link.ask(request, broker)
            found.update({each.group_id: _group(each) for each in described.groups})
        return dict(sorted(found.items()))


def _is_classic(listed: Message) -> bool:
    """Return whether a group is classic. Brokers that do not report the type have no other."""
    return (listed.group_type or "classic").lower() == "classic"


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
        held=tuple(
            TopicPartition(topic, number)
            for topic, numbers in sorted(held.items())
            for number in sorted(numbers)
        ),
    )
