"""Judge whether an assignment is as good as Kafka's, where it need not be equal.

Kafka's sticky assignors break ties by Java's hash order. So the judge compares what matters to a group: the
assignment is valid, how even it is, and how many partitions change owners.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from restow.model import Member, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Given = Mapping[str, Sequence[TopicPartition]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The input of an assignor."""

    partitions: dict[str, int]
    members: tuple[Member, ...]
    partition_racks: dict[str, list[list[str]]] | None = None

    def question(self) -> dict[str, Any]:
        """Return the arguments of `assign`, ours and Kafka's."""
        return {
            "partitions": self.partitions,
            "members": self.members,
            "partition_racks": self.partition_racks,
        }


def judge(name: str, group: Group, ours: Given, kafkas: Given) -> list[str]:
    """Return the faults of our assignment, compared with Kafka's for the same group."""
    return _JUDGES[name](group, ours, kafkas)


def faults(group: Group, given: Given, *, complete: bool) -> list[str]:
    """Return the faults that make any assignment invalid."""
    found = []
    topics = {member.id: set(member.topics) for member in group.members}
    if set(given) != set(topics):
        found.append(f"answers for {sorted(given)} in a group of {sorted(topics)}")
    holders = Counter(partition for partitions in given.values() for partition in partitions)
    found += [f"{partition} is given {times} times" for partition, times in holders.items() if times > 1]
    found += [
        f"{p} does not exist" for p in holders if not 0 <= p.partition < group.partitions.get(p.topic, 0)
    ]
    found += [
        f"{member} gets {partition} and does not subscribe to it"
        for member, partitions in given.items()
        for partition in partitions
        if partition.topic not in topics.get(member, ())
    ]
    if complete and (missing := unassigned(group, given)):
        found.append(f"nobody gets {', '.join(map(str, sorted(missing)))}")
    return found


def handed_over_too_early(group: Group, given: Given) -> list[str]:
    """Return partitions that a cooperative assignor gives to a member while their owner still reads them."""
    owners = owners_before(group)
    return [
        f"{member} gets {partition}, which {owners[partition]} still holds"
        for member, partitions in given.items()
        for partition in partitions
        if owners.get(partition, member) != member
    ]


def owners_before(group: Group) -> dict[TopicPartition, str]:
    """Return each partition's owner: the claimant of the highest generation, none if two share it."""
    return {p: rightful[0] for p, rightful in _rightful_claimants(group).items() if len(rightful) == 1}


def contested(group: Group) -> set[TopicPartition]:
    """Return partitions that two members claim with the same highest generation."""
    return {p for p, rightful in _rightful_claimants(group).items() if len(rightful) > 1}


def _rightful_claimants(group: Group) -> dict[TopicPartition, list[str]]:
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member in group.members:
        for partition in set(member.owned):
            generation = -1 if member.generation is None else member.generation
            claims.setdefault(partition, []).append((generation, member.id))
    return {
        partition: [member for generation, member in claimants if generation == max(claimants)[0]]
        for partition, claimants in claims.items()
    }


def taken(group: Group, given: Given) -> set[TopicPartition]:
    """Return existing partitions that their previous owner does not get."""
    kept = {(member, partition) for member, partitions in given.items() for partition in partitions}
    return {
        partition
        for partition, owner in owners_before(group).items()
        if 0 <= partition.partition < group.partitions.get(partition.topic, 0)
        and (owner, partition) not in kept
    }


def unassigned(group: Group, given: Given) -> set[TopicPartition]:
    """Return partitions of subscribed topics that no member gets."""
    wanted = {topic for member in group.members for topic in member.topics}
    everything = {
        TopicPartition(topic, partition)
        for topic, count in group.partitions.items()
        if topic in wanted
        for partition in range(count)
    }
    return everything - _all_of(given)


def _all_of(given: Given) -> set[TopicPartition]:
    return {partition for partitions in given.values() for partition in partitions}


def balance_score(given: Given) -> int:
    """Return the sum of the size differences of all pairs of members: 0 is perfectly even."""
    return sum(abs(len(one) - len(other)) for one, other in combinations(given.values(), 2))


def _judge_roundrobin(group: Group, ours: Given, kafkas: Given) -> list[str]:
    return _differences(ours, kafkas, list)


def _judge_range(group: Group, ours: Given, kafkas: Given) -> list[str]:
    """Compare as sets, because Java's hash order decides which topic comes first."""
    return faults(group, ours, complete=True) + _differences(ours, kafkas, set)


def _judge_sticky(group: Group, ours: Given, kafkas: Given) -> list[str]:
    found = faults(group, ours, complete=True)
    score, kafkas_score = balance_score(ours), balance_score(kafkas)
    if score > kafkas_score:
        found.append(f"balance score {score}, where Kafka has {kafkas_score}")
    if score == kafkas_score:
        found += _takes_more(group, ours, kafkas)
    return found


def _judge_uniform(group: Group, ours: Given, kafkas: Given) -> list[str]:
    """Compare exactly if all members want the same; else Kafka's answer depends on the ids of topics."""
    wanted = {frozenset(t for t in m.topics if group.partitions.get(t)) for m in group.members}
    if len(wanted) <= 1:
        return faults(group, ours, complete=True) + _differences(ours, kafkas, set)
    return _judge_sticky(group, ours, kafkas)


def _judge_cooperative_sticky(group: Group, ours: Given, kafkas: Given) -> list[str]:
    found = faults(group, ours, complete=False) + handed_over_too_early(group, ours)
    found += _takes_more(group, ours, kafkas)
    # Kafka gives partitions away that another member still claims; they should stay unassigned for a round.
    too_early = len(handed_over_too_early(group, kafkas)) + len(contested(group) & _all_of(kafkas))
    kafkas_left = len(unassigned(group, kafkas)) + too_early
    left = len(unassigned(group, ours))
    if left > kafkas_left:
        found.append(f"leaves {left} unassigned, where Kafka leaves {kafkas_left}")
    return found


def _takes_more(group: Group, ours: Given, kafkas: Given) -> list[str]:
    count, kafkas_count = len(taken(group, ours)), len(taken(group, kafkas))
    if count <= kafkas_count:
        return []
    return [f"takes {count} partitions from their owners, where Kafka takes {kafkas_count}"]


def _differences(ours: Given, kafkas: Given, as_what: type[list[Any]] | type[set[Any]]) -> list[str]:
    return [
        f"{member}: {ours.get(member)} instead of {kafkas.get(member)}"
        for member in sorted({*ours, *kafkas})
        if as_what(ours.get(member, ())) != as_what(kafkas.get(member, ()))
    ]


_JUDGES = {
    "range": _judge_range,
    "roundrobin": _judge_roundrobin,
    "sticky": _judge_sticky,
    "cooperative-sticky": _judge_cooperative_sticky,
    "uniform": _judge_uniform,
}
