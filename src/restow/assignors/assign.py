"""The one way in: checks what is asked, asks the assignor, and checks a stranger's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.assignors.registry import get
from restow.errors import AssignorFailed, InvalidGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from restow.assignors.base import Assignment, Assignor, PartitionRacks
    from restow.model import Member, TopicPartition


def assign(
    name: str,
    partitions: Mapping[str, int],
    members: Sequence[Member],
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """Deal a group's partitions out by the assignor of that name.

    `partitions` says how many each topic has; topics without any, and topics that are not there, are
    skipped. `partition_racks` gives for each topic the racks of each partition's replicas. Every member
    is a key of the answer.
    """
    assignor = get(name)
    members = tuple(members)
    _check_members(members)
    _check_partitions(partitions, partition_racks)
    assignment = assignor.assign(partitions, members, partition_racks)
    if not type(assignor).__module__.startswith("restow."):
        _check_answer(assignor, partitions, members, assignment)
    return assignment


def _check_members(members: Sequence[Member]) -> None:
    ids: set[str] = set()
    instances: dict[str, str] = {}
    for member in members:
        if not isinstance(member.id, str):
            raise InvalidGroup(f"a member's id must be a string, not {member.id!r}")
        if member.id in ids:
            raise InvalidGroup(f"member {member.id!r} is there twice: every member needs its own id")
        ids.add(member.id)
        topics: object = member.topics
        if isinstance(topics, str):
            raise InvalidGroup(f"member {member.id!r}: topics must be a tuple of names, not one string")
        if member.instance_id is None:
            continue
        other = instances.setdefault(member.instance_id, member.id)
        if other != member.id:
            raise InvalidGroup(
                f"members {other!r} and {member.id!r} both have the instance id {member.instance_id!r}: "
                "give each static member its own"
            )


def _check_partitions(partitions: Mapping[str, int], partition_racks: PartitionRacks | None) -> None:
    for topic, count in partitions.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**31:
            raise InvalidGroup(f"topic {topic!r}: the number of partitions must be 0 or more, not {count!r}")
    for topic, racks in (partition_racks or {}).items():
        if len(racks) not in (0, partitions.get(topic, len(racks))):
            raise InvalidGroup(
                f"topic {topic!r} has {partitions[topic]} partitions but racks for {len(racks)}: "
                "give one list of racks per partition"
            )


def _check_answer(
    assignor: Assignor, partitions: Mapping[str, int], members: Sequence[Member], answer: Assignment
) -> None:
    """A plugged-in assignor must not make two members read one partition, or lose a member."""
    wanted = {member.id: frozenset(member.topics) for member in members}
    if answer.keys() != wanted.keys():
        odd = sorted(answer.keys() ^ wanted.keys())
        raise AssignorFailed(f"assignor {assignor.name!r} must answer for exactly the members: see {odd}")
    given: dict[TopicPartition, str] = {}
    for member, mine in answer.items():
        for partition in mine:
            topic, number = partition
            if topic not in wanted[member] or not 0 <= number < partitions.get(topic, 0):
                raise AssignorFailed(
                    f"assignor {assignor.name!r} gave {topic}-{number} to {member!r}, "
                    "which does not subscribe to it or where it does not exist"
                )
            if given.setdefault(partition, member) != member:
                both = f"{given[partition]!r} and {member!r}"
                raise AssignorFailed(f"assignor {assignor.name!r} gave {topic}-{number} to both {both}")
