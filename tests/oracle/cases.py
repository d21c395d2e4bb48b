"""Random inputs for comparisons with Kafka, and their number.

Hypothesis chooses the shape of a case; bulk such as the racks of sixty partitions comes from a seed it draws,
which keeps a case quick to make and easy to replay.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from restow.model import Broker, Member, TopicPartition
from tests.judge import Group
from tests.seeds import SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

CASES = int(os.environ.get("RESTOW_CASES", "150"))

# Without a seed the cases are the same every time, so that a failure can be reproduced.
same_cases = settings(
    max_examples=CASES,
    derandomize=not SEED,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

TOPICS = ("a", "a.b", "topic-1", "topic-10", "Topic_2", "zz")
GHOST = "ghost"
RACKS = ("r0", "r1", "r2", "rack-ü")
# Includes names whose order differs between UTF-8 and UTF-16, because Kafka sorts by the latter.
MEMBER_NAMES = (
    "c-1",
    "c-10",
    "c-2",
    "C-3",
    "é",
    "日本",
    "\uff5e",
    "😀",
    "m",
    "n",
    "o",
    "p",
    "q",
    "r",
    "s",
    "t",
)
MOST_MEMBERS = 12


@st.composite
def brokers(draw: st.DrawFn) -> tuple[Broker, ...]:
    """Brokers in any order, with racks for all, some or none."""
    ids = draw(st.lists(st.integers(0, 200), min_size=1, max_size=20, unique=True))
    racked = draw(st.sampled_from(("all", "none", "some")))
    if racked == "none":
        return tuple(Broker(id_) for id_ in ids)
    racks = st.sampled_from(RACKS if racked == "all" else (*RACKS, None))
    return tuple(Broker(id_, draw(racks)) for id_ in ids)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A group that has never had an assignment."""
    topics = draw(st.lists(st.sampled_from(TOPICS), max_size=5, unique=True))
    partitions = {topic: draw(partition_counts) for topic in topics}
    racked = draw(st.booleans())
    seed = draw(seeds)
    return Group(
        partitions=partitions,
        members=draw(members(topics, racked=racked)),
        partition_racks=partition_racks(partitions, Random(seed)) if racked else None,
    )


partition_counts = st.one_of(st.integers(0, 12), st.integers(0, 60))
seeds = st.integers(0, 2**32 - 1)


def partition_racks(partitions: Mapping[str, int], random: Random) -> dict[str, list[list[str]]]:
    """Return racks of every partition's replicas, up to three; in some topics all have the same."""
    racks: dict[str, list[list[str]]] = {}
    for topic, count in partitions.items():
        replication_factor = random.randint(0, 3)
        same = random.sample(RACKS, replication_factor) if random.random() < 0.2 else None
        racks[topic] = [same or random.sample(RACKS, replication_factor) for _ in range(count)]
    return racks


@st.composite
def members(draw: st.DrawFn, topics: Sequence[str], *, racked: bool) -> tuple[Member, ...]:
    """One to twelve members with the same or with different subscriptions; ghost topics included."""
    names = draw(st.lists(st.sampled_from(MEMBER_NAMES), min_size=1, max_size=MOST_MEMBERS, unique=True))
    subscriptions = draw(subscription_source(topics))
    return tuple(draw(member(name, subscriptions, racked=racked)) for name in names)


def subscription_source(topics: Sequence[str]) -> st.SearchStrategy[st.SearchStrategy[tuple[str, ...]]]:
    """Return a strategy for a group's subscriptions: one for all of them, or one each."""
    any_topics = st.lists(st.sampled_from((*topics, GHOST)), max_size=len(topics) + 1, unique=True).map(tuple)
    return st.one_of(any_topics.map(st.just), st.just(tuple(topics)).map(st.just), st.just(any_topics))


@st.composite
def member(
    draw: st.DrawFn, name: str, subscriptions: st.SearchStrategy[tuple[str, ...]], *, racked: bool
) -> Member:
    static = draw(st.integers(0, 3)) == 0
    return Member(
        id=name,
        topics=draw(subscriptions),
        instance_id=f"{MEMBER_NAMES[-1 - MEMBER_NAMES.index(name)]}-static" if static else None,
        rack=draw(st.sampled_from((*RACKS, None))) if racked else None,
    )


@st.composite
def changes(draw: st.DrawFn) -> Callable[[Group, Mapping[str, Sequence[TopicPartition]], int], Group]:
    """Changes of a group between two rounds, given its assignment and generation."""
    seed = draw(seeds)
    leaving, joining = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    resubscribing = draw(st.booleans())
    asleep = draw(st.integers(0, 2))
    growing = draw(st.booleans())
    lying = draw(st.sampled_from(("nobody", "nobody", "same generation", "any generation", "beyond the end")))

    def change(group: Group, given: Mapping[str, Sequence[TopicPartition]], generation: int) -> Group:
        random = Random(seed)
        told = list(group.members)
        random.shuffle(told)
        sleepers = {m.id for m in told[:asleep]}
        staying = [
            m if m.id in sleepers else replace(m, owned=tuple(given[m.id]), generation=generation)
            for m in told[leaving:]
        ]
        if resubscribing:
            topics = sorted({*group.partitions, GHOST})
            staying = [
                replace(m, topics=_some(topics, random)) if random.random() < 0.4 else m for m in staying
            ]
        names = sorted(set(MEMBER_NAMES) - {m.id for m in told})
        room = MOST_MEMBERS - len(staying)
        model = random.choice(told)
        for name in random.sample(names, min(len(names), room, max(joining, not staying))):
            staying.append(Member(id=name, topics=model.topics, rack=model.rack))
        partitions, racks = _grown(group, random) if growing else (group.partitions, group.partition_racks)
        lied = _with_lies(staying, partitions, lying, generation, random)
        return Group(partitions=partitions, members=tuple(lied), partition_racks=racks)

    return change


def _some(topics: Sequence[str], random: Random) -> tuple[str, ...]:
    return tuple(random.sample(topics, random.randint(1, len(topics))))


def _grown(group: Group, random: Random) -> tuple[dict[str, int], dict[str, list[list[str]]] | None]:
    """Add partitions to topics, and perhaps delete one."""
    partitions = {topic: count + random.randint(0, 3) for topic, count in group.partitions.items()}
    if partitions and random.random() < 0.3:
        del partitions[random.choice(sorted(partitions))]
    return partitions, None if group.partition_racks is None else partition_racks(partitions, random)


def _with_lies(
    told: Sequence[Member], partitions: Mapping[str, int], lying: str, generation: int, random: Random
) -> list[Member]:
    """Let some members claim partitions of others, of older generations, or unknown ones."""
    existing = [TopicPartition(topic, p) for topic, count in partitions.items() for p in range(count)]
    if lying == "beyond the end":
        existing = [TopicPartition(topic, count + 2) for topic, count in partitions.items()]
    if lying == "nobody" or not existing:
        return list(told)
    liars = []
    for m in told:
        if random.random() < 0.5:
            claimed = {*m.owned, *random.sample(existing, random.randint(0, min(5, len(existing))))}
            when = generation if lying != "any generation" else random.randint(0, generation)
            liars.append(replace(m, owned=tuple(sorted(claimed)), generation=when))
        else:
            liars.append(m)
    return liars
