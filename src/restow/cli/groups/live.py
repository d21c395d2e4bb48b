"""A consumer group of a running cluster as the input of assignors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.groups.request import DEFAULT_ASSIGNOR, GroupRequest
from restow.cli.shared.connection import on_cluster
from restow.errors import InvalidGroup
from restow.model import Member

if TYPE_CHECKING:
    from restow.client import ClusterView, GroupLag, KafkaAdmin
    from restow.model import Topic


def live_group(bootstrap: str, name: str) -> GroupRequest:
    """Return a group with its topics, members, racks and present assignment."""
    return on_cluster(bootstrap, lambda admin: _found(admin, name))


async def _found(admin: KafkaAdmin, name: str) -> GroupRequest:
    from restow.client import group_lags

    (found,) = await group_lags(admin, 0, [name], in_time=False)
    if found.error is not None:
        raise InvalidGroup(f"group {name!r}: {found.error}")
    if not found.group.members:
        raise InvalidGroup(f"group {name!r} has no members: there is nobody to assign partitions to")
    return _request(found, await admin.describe_topics(), await admin.describe_cluster())


def _request(found: GroupLag, topics: tuple[Topic, ...], view: ClusterView) -> GroupRequest:
    group = found.group
    held = sorted({partition.topic for member in group.members for partition in member.held})
    subscribed = {topic for member in group.members for topic in member.topics or held}
    known = {topic.name: topic for topic in topics if topic.name in subscribed}
    racks = {node.id: node.rack for node in view.nodes}
    return GroupRequest(
        assignor=_assignor(group.assignor),
        partitions={name: len(topic.partitions) for name, topic in known.items()},
        members=tuple(
            Member(
                id=member.id,
                topics=tuple(member.topics or held),
                instance_id=member.instance_id,
                rack=member.rack,
                owned=tuple(each for each in member.held if each.topic in known),
                generation=0,
            )
            for member in group.members
        ),
        partition_racks={
            name: tuple(
                tuple(racks.get(broker) for broker in each.replicas)
                for each in sorted(topic.partitions, key=lambda each: each.number)
            )
            for name, topic in known.items()
        },
        lag={each.partition: each.lag for each in found.partitions if each.lag is not None},
    )


def _assignor(name: str | None) -> str:
    """Return the group's own assignor if it is known here."""
    from restow.assignors import names

    return name if name in names() else DEFAULT_ASSIGNOR
