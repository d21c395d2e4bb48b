"""Try assignors on one consumer group and measure balance, moves, cross-rack reads and lag.

The input is one row of Arrow columns per group, the output one row per assignor. Partitions are numbered, so
that numpy computes all measures from an array of owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.assignors import Member, TopicPartition, settled
from restow.assignors.compare import balance_score
from restow.assignors.names import partitions_of
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from restow.assignors import Assignment, PartitionRacks

NOBODY = -1


@dataclass(frozen=True, kw_only=True)
class ReplayedGroup:
    """A group in its newest state, its partitions numbered topic by topic."""

    members: tuple[Member, ...]
    """The members, each with the partitions that it held."""
    rounds: tuple[tuple[Member, ...], ...]
    """The members after each change, the present ones last; none hold partitions."""
    partitions: Mapping[str, int]
    racks: PartitionRacks | None
    number: Mapping[TopicPartition, int]
    owner: NDArray[np.int64]
    """The number of the member that held each partition, or `NOBODY`."""
    lag: NDArray[np.int64]
    near: Mapping[str, NDArray[np.bool_]]
    """For each rack, which partitions have a replica there."""

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
        wanted = {each["rack"] for each in row["members"] if each["rack"]}
        flat = list(chain.from_iterable(racks.values()))
        return cls(
            members=_members(row["members"], topics, owner, names),
            rounds=tuple(_members(each["members"], topics) for each in row["rounds"]),
            partitions=partitions,
            racks=racks if wanted else None,
            number=number,
            owner=owner,
            lag=np.maximum(latest - committed, 0),
            near={
                rack: np.fromiter((rack in there for there in flat), np.bool_, len(flat)) for rack in wanted
            },
        )

    @cached_property
    def work(self) -> dict[TopicPartition, float]:
        """The lag of each partition, for assignors that balance work; empty if there is none."""
        return dict(zip(self.number, self.lag.astype(float).tolist(), strict=True)) if self.lag.any() else {}

    def owners(self, answer: Assignment) -> NDArray[np.int64]:
        """Return the number of each partition's owner."""
        owner = np.full(len(self.number), NOBODY, dtype=np.int64)
        for at, mine in enumerate(answer.values()):
            owner[list(map(self.number.__getitem__, mine))] = at
        return owner


def _subscription(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the topics of members that do not report theirs: all that the group holds."""
    return tuple(dict.fromkeys(each["topic"] for each in row["held"]))


def _members(
    rows: Iterable[Mapping[str, Any]],
    otherwise: tuple[str, ...],
    owner: NDArray[np.int64] | None = None,
    names: Sequence[TopicPartition] = (),
) -> tuple[Member, ...]:
    return tuple(
        Member(
            id=each["member"],
            topics=otherwise if each["subscription"] is None else tuple(each["subscription"]),
            rack=each["rack"],
            owned=() if owner is None else tuple(names[p] for p in np.flatnonzero(owner == at).tolist()),
        )
        for at, each in enumerate(rows)
    )


def _per_partition(
    topics: Iterable[Mapping[str, Any]], sizes: Mapping[str, int]
) -> tuple[dict[str, list[list[str | None]]], NDArray[np.int64]]:
    """Return every partition's racks and log end offset; a partition without a sample has neither."""
    racks: dict[str, list[list[str | None]]] = {}
    ends = []
    for each in topics:
        size = sizes[each["topic"]]
        latest = np.zeros(size, dtype=np.int64)
        latest[each["partition"]] = [end or 0 for end in each["latest"]]
        ends.append(latest)
        seen = dict(zip(each["partition"], each["racks"], strict=True))
        racks[each["topic"]] = [seen.get(partition) or [] for partition in range(size)]
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
            answer, _ = settled(name, group.partitions, group.members, group.racks, group.work)
            owner = group.owners(answer)
            moved = _moved_in_history(name, group)
        except RestowError as error:
            yield about | now | {"assignor": name, "error": str(error)}
            continue
        changed = int(((group.owner != owner) & (group.owner != NOBODY)).sum())
        yield (
            about
            | now
            | measures(group, owner)
            | {"assignor": name, "moved": changed, "replayed": moved, "error": None}
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
        "cross_rack": _cross_rack(group, owner),
    }


def _skew(loads: NDArray[Any]) -> float | None:
    """Return the largest load over the mean; None if there is no load."""
    mean = loads.mean()
    return float(loads.max() / mean) if mean > 0 else None


def _cross_rack(group: ReplayedGroup, owner: NDArray[np.int64]) -> int | None:
    """Count the partitions without a replica in their owner's rack; None if no member reports its rack."""
    if not group.near:
        return None
    far = 0
    for at, member in enumerate(group.members):
        if member.rack:
            far += int((~group.near[member.rack])[owner == at].sum())
    return far


def _holding(members: Iterable[Member], answer: Assignment) -> list[Member]:
    return [
        Member(id=each.id, topics=each.topics, rack=each.rack, owned=tuple(answer.get(each.id, ())))
        for each in members
    ]


def _moved_in_history(name: str, group: ReplayedGroup) -> int:
    """Count the partitions that would have changed owners in the group's past, with this assignor.

    Partitions of members that left count too, for every assignor alike.
    """
    answer: Assignment = {}
    moved = 0
    for members in group.rounds if len(group.rounds) > 1 else ():
        before = {partition: member for member, mine in answer.items() for partition in mine}
        answer, _ = settled(name, group.partitions, _holding(members, answer), group.racks, group.work)
        moved += sum(
            before.get(partition, member) != member for member, mine in answer.items() for partition in mine
        )
    return moved
