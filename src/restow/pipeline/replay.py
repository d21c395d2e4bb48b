"""Try assignors on one consumer group and measure balance, moves, cross-rack reads and lag.

The input is one row of Arrow columns per group, the output one row per assignor. Partitions are numbered, so
that numpy computes all measures from an array of owners.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.assignors import Member, TopicPartition, get, settled_rows
from restow.assignors.compare import balance_score
from restow.assignors.names import partitions_of
from restow.assignors.rows import Layout, PartitionRow
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors import Dealt, PartitionRacks

NOBODY = -1
_OF_BROKERS = ("uniform", "rack-uniform")
_HEARTBEAT_S, _BROKERS_HEARTBEAT_S = 3.0, 5.0
"""Kafka's defaults, of the classic protocol and of the protocol `consumer`."""


@dataclass(frozen=True, slots=True)
class Round:
    """A group after one change: its members, none of which hold partitions, its topics and its lag."""

    members: tuple[Member, ...]
    partitions: Mapping[str, int]
    racks: PartitionRacks | None
    work: Mapping[TopicPartition, float]

    @classmethod
    def of(cls, row: Mapping[str, Any], topics: tuple[str, ...], group: ReplayedGroup) -> Round:
        """Read one change. Recorded ones tell only members; topics and lag are those of the present."""
        members = _members(row["members"], topics)
        if row.get("partitions") is None:
            return cls(members, group.partitions, group.racks, group.work)
        partitions = {topic: min(size, group.partitions[topic]) for topic, size in row["partitions"].items()}
        racks = group.racks and {topic: group.racks[topic][:size] for topic, size in partitions.items()}
        share = row["lag_share"]
        work = {each: lag * share for each, lag in group.work.items() if each[1] < partitions.get(each[0], 0)}
        return cls(members, partitions, racks, work)


@dataclass(frozen=True, kw_only=True)
class ReplayedGroup:
    """A group in its newest state, its partitions numbered topic by topic."""

    members: tuple[Member, ...]
    """The members, each with the partitions that it held."""
    rounds: tuple[Round, ...]
    """What was after each change, the present state last."""
    partitions: Mapping[str, int]
    racks: PartitionRacks | None
    layout: Layout
    number: Mapping[TopicPartition, int]
    owner: NDArray[np.int64]
    """The number of the member that held each partition, or `NOBODY`."""
    lag: NDArray[np.int64]
    far: NDArray[np.bool_] | None
    """Members × partitions: whether no replica is in the member's rack; None if no member has one."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ReplayedGroup:
        """Read one row of the group table."""
        partitions = {each["topic"]: max(each["partition"]) + 1 for each in row["topics"]}
        names = list(chain.from_iterable(partitions_of(topic, size) for topic, size in partitions.items()))
        number = dict(zip(names, count(), strict=False))
        held = [(each, number.get(TopicPartition(each["topic"], each["partition"]))) for each in row["held"]]
        known = [(each, at) for each, at in held if at is not None]
        topics = _subscription(row)
        ids = {each["member"]: at for at, each in enumerate(row["members"])}
        owner = np.full(len(names), NOBODY, dtype=np.int64)
        owner[[at for _, at in known]] = [ids.get(each["member"], NOBODY) for each, _ in known]
        racks, latest = _per_partition(row["topics"], partitions)
        committed = latest.copy()
        committed[[at for _, at in known]] = [
            latest[at] if each["committed"] is None else each["committed"] for each, at in known
        ]
        far = _far(racks.values(), [each["rack"] for each in row["members"]])
        layout = Layout(tuple(partitions), np.array(list(partitions.values()), dtype=np.int64))
        group = cls(
            members=_members(row["members"], topics, owner, layout),
            rounds=(),
            partitions=partitions,
            racks=None if far is None else racks,
            layout=layout,
            number=number,
            owner=owner,
            lag=np.maximum(latest - committed, 0),
            far=far,
        )
        return replace(group, rounds=tuple(Round.of(each, topics, group) for each in row["rounds"]))

    @cached_property
    def work(self) -> dict[TopicPartition, float]:
        """The lag of each partition, for assignors that balance work; empty if there is none."""
        return dict(zip(self.number, self.lag.astype(float).tolist(), strict=True)) if self.lag.any() else {}

    def owners(self, answer: Dealt) -> NDArray[np.int64]:
        """Return the number of each partition's owner."""
        owner = np.full(len(self.number), NOBODY, dtype=np.int64)
        like_ours: Layout | None = None
        for at, mine in enumerate(answer.values()):
            if isinstance(mine, PartitionRow) and (
                mine.layout is like_ours or mine.layout.agrees_with(self.layout)
            ):
                like_ours = mine.layout
                owner[mine.numbers] = at
            else:
                owner[list(map(self.number.__getitem__, mine))] = at
        return owner


def _subscription(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the topics of members that do not report theirs: all that the group holds."""
    return tuple(dict.fromkeys(each["topic"] for each in row["held"]))


def _members(
    rows: Iterable[Mapping[str, Any]],
    otherwise: tuple[str, ...],
    owner: NDArray[np.int64] | None = None,
    layout: Layout | None = None,
) -> tuple[Member, ...]:
    """Return the members; given owners, each with its partitions."""
    return tuple(
        Member(
            id=each["member"],
            topics=otherwise if each["subscription"] is None else tuple(each["subscription"]),
            rack=each["rack"],
            owned=() if owner is None or layout is None else _row(layout, np.flatnonzero(owner == at)),
        )
        for at, each in enumerate(rows)
    )


def _row(layout: Layout, numbers: NDArray[np.int64]) -> PartitionRow:
    return PartitionRow(layout, len(numbers), numbers)


def _far(racks: Iterable[Sequence[frozenset[str]]], stands: Sequence[str | None]) -> NDArray[np.bool_] | None:
    """Return the table `ReplayedGroup.far`."""
    replicas = list(chain.from_iterable(racks))
    away = {
        rack: np.fromiter((rack not in there for there in replicas), np.bool_, len(replicas))
        for rack in set(stands)
        if rack
    }
    nowhere = np.zeros(len(replicas), dtype=np.bool_)
    return np.array([away.get(rack or "", nowhere) for rack in stands]) if away else None


def _per_partition(
    topics: Iterable[Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[dict[str, list[frozenset[str]]], NDArray[np.int64]]:
    """Return every partition's racks and log end offset; a partition without a sample has neither.

    Many have their replicas in the same racks, and share one set.
    """
    racks: dict[str, list[frozenset[str]]] = {}
    ends = []
    shared: dict[frozenset[str], frozenset[str]] = {}
    none: frozenset[str] = frozenset()
    for each in topics:
        size = sizes[each["topic"]]
        latest = np.zeros(size, dtype=np.int64)
        latest[each["partition"]] = [end or 0 for end in each["latest"]]
        ends.append(latest)
        there = [shared.setdefault(one, one) for one in (frozenset(near or ()) for near in each["racks"])]
        seen = dict(zip(each["partition"], there, strict=True))
        racks[each["topic"]] = [seen.get(partition, none) for partition in range(size)]
    return racks, np.concatenate(ends) if ends else np.zeros(0, dtype=np.int64)


def replayed(row: Mapping[str, Any], assignors: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row per assignor: its measures, or the reason why there are none."""
    group = ReplayedGroup.of(row)
    about = {
        "cluster": row["cluster"],
        "group": row["group"],
        "at": row["at"],
        "uses": row["assignor"],
        "members": len(group.members),
        "topics": len(group.partitions),
        "partitions": len(group.number),
        "lag": int(group.lag.sum()),
        "rounds": len(group.rounds),
    }
    if not group.members or not group.number:
        lacking = "no members" if not group.members else "no partitions"
        for name in assignors:
            yield about | {"assignor": name, "error": f"the group has {lacking}"}
        return
    now = {f"{key}_now": value for key, value in measures(group, group.owner).items()}
    for name in assignors:
        try:
            answer, _ = settled_rows(name, group.partitions, group.members, group.racks, group.work)
            owner = group.owners(answer)
            past = _history(name, group)
        except RestowError as error:
            yield about | now | {"assignor": name, "error": str(error)}
            continue
        held = group.owner != NOBODY
        switch = _Rebalance(int(((group.owner != owner) & held).sum()), int(held.sum()))
        yield (
            about
            | now
            | measures(group, owner)
            | {
                "assignor": name,
                "moved": switch.moved,
                "replayed": sum(each.moved for each in past),
                "without_owner_s": switch.without_owner_s(name),
                "replayed_without_owner_s": sum((each.without_owner_s(name) for each in past), 0.0),
                "error": None,
            }
        )


def measures(group: ReplayedGroup, owner: NDArray[np.int64]) -> dict[str, Any]:
    """Return the measures of an assignment."""
    has = owner != NOBODY
    counts = np.bincount(owner[has], minlength=len(group.members))
    lags = np.bincount(owner[has], group.lag[has], minlength=len(group.members))
    return {
        "skew": _skew(counts),
        "balance_score": balance_score(counts.tolist()),
        "lag_skew": _skew(lags),
        "most_lag": int(lags.max(initial=0)),
        "cross_rack": _cross_rack(group, owner),
    }


def _skew(loads: NDArray[Any]) -> float | None:
    """Return the largest load over the mean; None if there is no load."""
    mean = loads.mean()
    return float(loads.max() / mean) if mean > 0 else None


def _cross_rack(group: ReplayedGroup, owner: NDArray[np.int64]) -> int | None:
    """Count the partitions without a replica in their owner's rack; None if no member reports its rack."""
    if group.far is None:
        return None
    held = np.flatnonzero(owner != NOBODY)
    return int(np.count_nonzero(group.far[owner[held], held]))


def _holding(members: Iterable[Member], answer: Dealt) -> list[Member]:
    return [
        Member(id=each.id, topics=each.topics, rack=each.rack, owned=answer.get(each.id, ()))
        for each in members
    ]


@dataclass(frozen=True, slots=True)
class _Rebalance:
    """What a rebalance does to the partitions that somebody held before."""

    moved: int
    held: int

    def without_owner_s(self, assignor: str) -> float:
        """Return for how long partitions have no owner, all together and at most.

        Members hear of a rebalance with their heartbeats. Those of an eager assignor give up everything and
        wait for the last one to hear of it. A cooperative assignor needs that time for what moves: it is
        free after the first round, and given out in the second. A broker gives out what was released with
        the next heartbeat of the new owner.
        """
        if assignor in _OF_BROKERS:
            return self.moved * _BROKERS_HEARTBEAT_S
        return (self.moved if get(assignor).cooperative else self.held) * _HEARTBEAT_S


def _history(name: str, group: ReplayedGroup) -> list[_Rebalance]:
    """Return the rebalances that this assignor would have made in the group's past.

    Partitions of members that left count too, for every assignor alike.
    """
    answer: Dealt = {}
    past = []
    for then in group.rounds if len(group.rounds) > 1 else ():
        before = {partition: member for member, mine in answer.items() for partition in mine}
        holding = _holding(then.members, answer)
        answer, _ = settled_rows(name, then.partitions, holding, then.racks, then.work)
        moved = sum(
            before.get(partition, member) != member for member, mine in answer.items() for partition in mine
        )
        past.append(_Rebalance(moved, len(before)))
    return past
