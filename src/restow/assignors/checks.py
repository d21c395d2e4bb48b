"""Check a group before an assignor gets it, and an answer before the caller does.

Types are checked although they are declared: groups come from files and other clients, and a wrong type
should give a clear error, not a failure halfway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from restow.errors import AssignorFailed, InvalidGroup
from restow.model import Member

if TYPE_CHECKING:
    from restow.assignors.base import Assignment

_MOST_PARTITIONS = 2**31 - 1
_LISTS = frozenset((list, tuple, frozenset, set))


def check_members(members: Iterable[object]) -> tuple[Member, ...]:
    """Return the members; refuse invalid members and duplicates.

    There may be thousands, most with an id and topics only: what can be looked at in all of them at once is.
    """
    listed = _iterated(members, "members must be a sequence of members")
    checked = [member for member in listed if isinstance(member, Member)]
    if len(checked) < len(listed):
        odd = next(member for member in listed if not isinstance(member, Member))
        raise InvalidGroup(f"a member must be a restow.assignors.Member, not {odd!r}")
    for member in [
        each
        for each in checked
        if type(each.id) is not str
        or each.instance_id is not None
        or each.rack is not None
        or not (each.generation is None or type(each.generation) is int)
        or each.user_data is not None
    ]:
        _check_member(member)
    for member in {id(member.topics): member for member in checked}.values():
        _check_topics(member)  # members created together mostly share them
    if len({member.id for member in checked}) < len(checked):
        ((twice, _),) = Counter(member.id for member in checked).most_common(1)
        raise InvalidGroup(f"member {twice!r} is there twice: every member needs its own id")
    _check_instances([member for member in checked if member.instance_id is not None])
    return tuple(checked)


def _check_instances(members: Iterable[Member]) -> None:
    instances: dict[str | None, str] = {}
    for member in members:
        other = instances.setdefault(member.instance_id, member.id)
        if other != member.id:
            raise InvalidGroup(
                f"members {other!r} and {member.id!r} both have the instance id {member.instance_id!r}: "
                "give each static member its own"
            )


def _check_member(member: Member) -> None:
    if not isinstance(member.id, str):
        raise InvalidGroup(f"a member's id must be a string, not {member.id!r}")
    if member.instance_id is not None:
        _check_type(member, "instance id", member.instance_id, str)
    if member.rack is not None:
        _check_type(member, "rack", member.rack, str)
    if member.generation is not None:
        _check_type(member, "generation", member.generation, int)
    if member.user_data is not None:
        _check_type(member, "user data", member.user_data, bytes)


def _check_type(member: Member, what: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise InvalidGroup(f"member {member.id!r}: the {what} must be {kind.__name__}, not {value!r}")


def _check_topics(member: Member) -> None:
    topics: object = member.topics
    if not isinstance(topics, tuple | list | set | frozenset):
        raise InvalidGroup(f"member {member.id!r}: topics must be a tuple of names, not {topics!r}")
    try:
        "".join(topics)  # the fastest way to check that all are strings
    except TypeError:
        odd = next(topic for topic in topics if not isinstance(topic, str))
        raise InvalidGroup(f"member {member.id!r}: topics must be names, not {odd!r}") from None


def check_partitions(partitions: object) -> None:
    """Check the number of partitions of each topic."""
    if not isinstance(partitions, Mapping):
        raise InvalidGroup(f"partitions must map each topic to its number of partitions, not {partitions!r}")
    for topic, count in partitions.items():
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST_PARTITIONS:
            raise InvalidGroup(
                f"topic {topic!r}: the number of partitions must be 0 to {_MOST_PARTITIONS:,}, not {count!r}"
            )


def check_racks(partitions: Mapping[str, int], partition_racks: object) -> None:
    """Check that there is one collection of racks per partition."""
    if partition_racks is None:
        return
    if not isinstance(partition_racks, Mapping):
        raise InvalidGroup(f"partition_racks must map each topic to lists of racks, not {partition_racks!r}")
    for topic, racks in partition_racks.items():
        if not isinstance(racks, Sequence) or isinstance(racks, str):
            raise InvalidGroup(f"topic {topic!r}: racks must be a list of lists, not {racks!r}")
        if len(racks) not in (0, partitions.get(topic, len(racks))):
            raise InvalidGroup(
                f"topic {topic!r} has {partitions[topic]} partitions but racks for {len(racks)}: "
                "give one list of racks per partition"
            )
        if _LISTS.issuperset(map(type, racks)):
            continue
        for partition, of in enumerate(racks):
            if isinstance(of, str) or not isinstance(of, Iterable):
                raise InvalidGroup(
                    f"topic {topic!r}, partition {partition}: racks must be a list, not {of!r}"
                )


def check_answer(
    name: str, partitions: Mapping[str, int], members: Sequence[Member], answer: object
) -> Assignment:
    """Refuse a plugin's answer that gives a partition to two members, or omits a member."""
    if not isinstance(answer, dict):
        raise AssignorFailed(f"assignor {name!r} must answer with a dict of lists, not {answer!r:.100}")
    wanted = {member.id: frozenset(member.topics) for member in members}
    if odd := answer.keys() ^ wanted.keys():
        raise AssignorFailed(f"assignor {name!r} must answer for exactly the members: see {sorted(odd)}")
    given: dict[tuple[str, int], str] = {}
    for member, mine in answer.items():
        for partition in _iterated(mine, f"assignor {name!r} must give {member!r} a list of partitions"):
            match partition:
                case tuple((str(topic), int(number))):
                    gave = f"assignor {name!r} gave {topic}-{number}"
                case _:
                    raise AssignorFailed(f"assignor {name!r} gave {member!r} {partition!r}: no partition")
            if topic not in wanted[member] or not 0 <= number < partitions.get(topic, 0):
                raise AssignorFailed(f"{gave} to {member!r}: not wanted there, or not existing")
            if (topic, number) in given:
                raise AssignorFailed(f"{gave} to both {given[topic, number]!r} and {member!r}")
            given[topic, number] = member
    return answer


def _iterated(values: object, otherwise: str) -> list[object]:
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        error = AssignorFailed if otherwise.startswith("assignor") else InvalidGroup
        raise error(f"{otherwise}, not {values!r:.200}")
    return list(values)
