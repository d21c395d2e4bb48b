"""Which consumer groups a plan touches: leaders that move under them, racks, and their coordinators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import TopicPartition
from restow.model.group_partitions import partition_of_group
from restow.plan.explain.note import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import BrokerId, Move, ReadingGroup, Snapshot

OFFSETS_TOPIC = "__consumer_offsets"
_NAMED = 10


@frozen
class TouchedGroup:
    """What a plan means for one group."""

    name: str
    protocol: str
    leaders: tuple[TopicPartition, ...] = ()
    """Partitions that it reads and whose leader changes: its consumers connect to another broker."""
    leaves_rack: tuple[TopicPartition, ...] = ()
    """Partitions that are read within the rack of their consumer now, and from another rack afterwards."""
    enters_rack: tuple[TopicPartition, ...] = ()
    """The other way round."""
    coordinator: tuple[BrokerId, BrokerId] | None = None
    """The coordinator before and after, if it changes: members look for it, and the group is loaded anew."""


def groups_touched(snapshot: Snapshot, moves: Iterable[Move]) -> tuple[TouchedGroup, ...]:
    """Return the groups of a snapshot that a plan touches, by name."""
    changed = {move.partition: move for move in moves}
    offsets = snapshot.topic.get(OFFSETS_TOPIC)
    found = []
    for group in snapshot.groups:
        coordinated = TopicPartition(
            OFFSETS_TOPIC, partition_of_group(group.name, len(offsets.partitions)) if offsets else 0
        )
        touched = _touched(snapshot, group, changed, coordinated)
        if touched.leaders or touched.leaves_rack or touched.enters_rack or touched.coordinator:
            found.append(touched)
    return tuple(found)


def _touched(
    snapshot: Snapshot,
    group: ReadingGroup,
    changed: Mapping[TopicPartition, Move],
    coordinated: TopicPartition,
) -> TouchedGroup:
    leaders, leaves, enters = [], [], []
    for member in group.members:
        for partition in member.partitions:
            move = changed.get(partition)
            if move is None:
                continue
            before = _leader(snapshot, move)
            if before != move.after[0]:
                leaders.append(partition)
            if member.rack is not None:
                was, will = (_rack(snapshot, broker) == member.rack for broker in (before, move.after[0]))
                if was and not will:
                    leaves.append(partition)
                elif will and not was:
                    enters.append(partition)
    coordinator = changed.get(coordinated)
    pair = None if coordinator is None else (_leader(snapshot, coordinator), coordinator.after[0])
    return TouchedGroup(
        name=group.name,
        protocol=group.protocol,
        leaders=tuple(sorted(leaders)),
        leaves_rack=tuple(sorted(leaves)),
        enters_rack=tuple(sorted(enters)),
        coordinator=None if pair is None or pair[0] == pair[1] else pair,
    )


def _leader(snapshot: Snapshot, move: Move) -> BrokerId:
    known = snapshot.partition(move.partition)
    return move.before[0] if known is None or known.leader is None else known.leader


def _rack(snapshot: Snapshot, broker: BrokerId) -> str | None:
    known = snapshot.broker.get(broker)
    return None if known is None else known.rack


def group_lines(groups: Sequence[TouchedGroup]) -> list[str]:
    """Return a sentence for each way in which groups are touched."""
    ways = (
        ("leaders that move under groups", [(each.name, len(each.leaders)) for each in groups]),
        ("reads that leave their consumer's rack", [(each.name, len(each.leaves_rack)) for each in groups]),
        (
            "reads that come into their consumer's rack",
            [(each.name, len(each.enters_rack)) for each in groups],
        ),
        ("coordinators that change", [(each.name, int(each.coordinator is not None)) for each in groups]),
    )
    lines = []
    for what, found in ways:
        some = [f"{name} {number:,}" for name, number in found if number]
        more = f" and {len(some) - _NAMED:,} more groups" if len(some) > _NAMED else ""
        if some:
            lines.append(f"{what}: {', '.join(some[:_NAMED])}{more}")
    return lines


def group_notes(snapshot: Snapshot, moves: Iterable[Move]) -> list[Note]:
    """Return what a plan's reader is told of groups."""
    groups = groups_touched(snapshot, moves)
    return [Note(text=line) for line in group_lines(groups)]
