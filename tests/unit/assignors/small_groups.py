"""Groups for hypothesis, and the optimum for those small enough for exhaustive search."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from restow.model import Member, TopicPartition
from tests.judge import Group, balance_score, owners_before
from tests.often import of_many
from tests.seeds import SEED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

NAMES = ("sticky", "cooperative-sticky", "range", "roundrobin", "uniform")
TOPICS = ("a", "b", "c")
MORE_TOPICS = (*TOPICS, "d", "e", "f")
GHOST = "ghost"
RACKS = ("east", "north", "west")
# The last two sort differently by code points and by UTF-16, which is Java's order.
MEMBERS = ("c-1", "c-10", "c-2", "d", "e", "f", "g", "é", "\uff5e", "\U0001f600")

# The same cases in every run, however busy the machine is.
same_cases = settings(
    max_examples=of_many(300, often=100),
    derandomize=not SEED,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@st.composite
def groups(
    draw: st.DrawFn,
    *,
    members: int = 4,
    partitions: int = 6,
    topics: tuple[str, ...] = TOPICS,
    claims: bool = True,
    racked: bool = False,
) -> Group:
    """Draw a group up to this size, with any subscriptions, and claims that may collide."""
    counts = {topic: draw(st.integers(0, partitions // len(topics))) for topic in topics}
    random = Random(draw(st.integers(0, 2**32 - 1)))
    alike = draw(st.booleans())
    everything = [TopicPartition(topic, p) for topic, count in counts.items() for p in range(count)]
    names = draw(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=members, unique=True))
    return Group(
        partitions=counts,
        members=tuple(
            Member(
                id=name,
                topics=topics if alike else some((*topics, GHOST), random),
                rack=random.choice((*RACKS, None)) if racked else None,
                owned=some(everything, random) if claims and random.random() < 0.7 else (),
                generation=random.choice((None, 0, 1, 1, 2)),
            )
            for name in names
        ),
        partition_racks=racks_for(counts, random) if racked else None,
    )


def some(things: Sequence[Any], random: Random) -> tuple[Any, ...]:
    return tuple(random.sample(things, random.randint(0, len(things))))


def racks_for(partitions: Mapping[str, int], random: Random) -> dict[str, list[list[str]]]:
    """Return up to two racks for each partition."""
    return {
        topic: [random.sample(RACKS, random.randint(0, 2)) for _ in range(count)]
        for topic, count in partitions.items()
    }


class Worth(NamedTuple):
    """The criteria for an assignment, in this order; less is better."""

    balance_score: int
    taken: int
    """Partitions that their owner could keep but does not."""
    far: int
    """Partitions read by a member in a rack without a replica."""


def worth(group: Group, given: Mapping[str, Sequence[TopicPartition]]) -> Worth:
    """Return the worth of an assignment."""
    takers = takers_of(group)
    prices = [
        price(group, member, partition)
        for member in group.members
        for partition in given[member.id]
        if partition in takers
    ]
    return Worth(balance_score(given), sum(p[0] for p in prices), sum(p[1] for p in prices))


def best(group: Group) -> Worth:
    """Return the least worth of all complete assignments.

    The search goes through all of them, partition by partition; of those with the same counts only the
    cheapest is pursued, since nothing that follows depends on the rest.
    """
    cheapest = {(0,) * len(group.members): (0, 0)}
    for partition, takers in takers_of(group).items():
        longer: dict[tuple[int, ...], tuple[int, int]] = {}
        for counts, paid in cheapest.items():
            for taker in takers:
                now = (*counts[:taker], counts[taker] + 1, *counts[taker + 1 :])
                taken, far = price(group, group.members[taker], partition)
                longer[now] = min(longer.get(now, (10**9, 0)), (paid[0] + taken, paid[1] + far))
        cheapest = longer
    return min(
        Worth(balance_score({str(i): range(n) for i, n in enumerate(counts)}), *paid)
        for counts, paid in cheapest.items()
    )


def takers_of(group: Group) -> dict[TopicPartition, list[int]]:
    """Return every partition with a subscriber, and the positions of its subscribers."""
    return {
        TopicPartition(topic, p): takers
        for topic, count in group.partitions.items()
        if (takers := [i for i, member in enumerate(group.members) if topic in member.topics])
        for p in range(count)
    }


def price(group: Group, member: Member, partition: TopicPartition) -> tuple[int, int]:
    """Return whether the partition leaves an owner that wants its topic, and whether it is out of rack."""
    owner = owners_before(group).get(partition, member.id)
    wanted = any(m.id == owner and partition.topic in m.topics for m in group.members)
    racks = (
        [] if group.partition_racks is None else group.partition_racks[partition.topic][partition.partition]
    )
    return int(wanted and owner != member.id), int(member.rack is not None and member.rack not in racks)


def racks_matter(group: Group) -> bool:
    """Return whether some member is in a replica's rack and not every partition is in all of those racks."""
    if group.partition_racks is None:
        return False
    racks = [frozenset(group.partition_racks[t][p]) for t, p in takers_of(group)]
    everywhere = frozenset().union(*racks)
    return any(m.rack in everywhere for m in group.members) and any(r != everywhere for r in racks)


def no_direct_move_helps(group: Group, given: Mapping[str, Sequence[TopicPartition]]) -> bool:
    """Return whether the group is balanced as in Kafka: no member could take from one with two more."""
    return not any(
        len(given[giver.id]) >= len(given[taker.id]) + 2
        for giver in group.members
        for taker in group.members
        if any(partition.topic in taker.topics for partition in given[giver.id])
    )


def spread_at_random(group: Group, random: Random) -> dict[str, list[TopicPartition]]:
    """Return a random complete assignment."""
    given: dict[str, list[TopicPartition]] = {member.id: [] for member in group.members}
    for partition, takers in takers_of(group).items():
        given[group.members[random.choice(takers)].id].append(partition)
    return given


def leveled(
    group: Group, given: dict[str, list[TopicPartition]]
) -> Iterator[dict[str, list[TopicPartition]]]:
    """Yield the assignment after each direct move, until none helps."""
    yield given
    for giver in group.members:
        for taker in group.members:
            for partition in given[giver.id]:
                if partition.topic in taker.topics and len(given[giver.id]) >= len(given[taker.id]) + 2:
                    moved = {
                        **given,
                        giver.id: [p for p in given[giver.id] if p != partition],
                        taker.id: [*given[taker.id], partition],
                    }
                    yield from leveled(group, moved)
                    return
