"""Notes for a plan's reader beyond its numbers, with the partitions concerned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from restow.plan.explain.amounts import by_log_dir
from restow.plan.explain.groups import group_notes
from restow.plan.explain.note import Note
from restow.plan.goals import DEFAULT_BAND
from restow.plan.request.promises import unsettled
from restow.sizes import count, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model import Move, Snapshot
    from restow.model.load import LoadModel
    from restow.plan.request.framing import Asked


_NAMED = 10


def notes_of(
    snapshot: Snapshot, asked: Asked, load: LoadModel | None, moves: Sequence[Move]
) -> tuple[Note, ...]:
    """Return all notes, warnings first."""
    found = [*_left_alone(asked), *_one_rack(asked, moves), *_kept_from(asked), *_internal(asked)]
    found += [*_out_of_sync(asked), *_uneven_dirs(snapshot, asked, moves), *group_notes(snapshot, moves)]
    found += _unsized(snapshot, moves)
    if load is None:
        text = "there is no load model: this goes by the sizes of log dirs and by numbers alone"
        found.append(Note(text=text))
    elsewhere = sum(
        [
            leader is not None and leader != replicas[0]
            for _, replicas, _, leader, _, _, _ in asked.arrays.partitions
        ]
    )
    if elsewhere:
        found.append(
            Note(
                text=f"{count(elsewhere, 'partition')} not led by the first replica: loads are counted as if "
                "it led"
            )
        )
    return tuple(sorted([*found, *_too_few_racks(asked)], key=lambda note: not note.warning))


def _left_alone(asked: Asked) -> list[Note]:
    """Note moving partitions and those without a leader: no move can be planned for them now."""
    arrays = asked.arrays
    left = np.flatnonzero(~arrays.settled).tolist()
    moving = [number for number in left if arrays.partitions[number].moving]
    leaderless = [number for number in left if not arrays.partitions[number].moving]
    found = []
    if moving:
        found.append(
            Note(
                text="partitions being moved now, which the plan leaves alone and counts with their old and "
                f"new replicas ({len(moving):,})",
                partitions=tuple(arrays.names[number] for number in moving),
                warning=True,
                advice="wait for these moves (restow watch) and plan again, if the numbers are to be right",
            )
        )
    if leaderless:
        first = unsettled(arrays, leaderless[0])
        found.append(
            Note(
                text=f"partitions without a leader, which the plan leaves alone ({len(leaderless):,}); "
                f"of the first, {first}",
                partitions=tuple(arrays.names[number] for number in leaderless),
                warning=True,
                advice="start the brokers that have their replicas",
            )
        )
    return found


def _unsized(snapshot: Snapshot, moves: Sequence[Move]) -> list[Note]:
    """Note moves of partitions whose size no broker told, because those that know it do not answer."""
    if not snapshot.unanswered:
        return []
    unknown = {name for name, each in snapshot.all_partitions() if not each.copies}
    unsized = tuple(move.partition for move in moves if move.adding and move.partition in unknown)
    if not unsized:
        return []
    silent = ", ".join(map(str, snapshot.unanswered))
    return [
        Note(
            text=f"partitions of unknown size to copy, which are counted as 0 B ({len(unsized):,}): no "
            f"answer about log dirs from brokers {silent}",
            partitions=unsized,
            warning=True,
            advice="plan again when these brokers answer, if the bytes and the time are to be right",
        )
    ]


def _one_rack(asked: Asked, moves: Sequence[Move]) -> list[Note]:
    """Note partitions with two replicas in one rack while another has none, if the request keeps them."""
    arrays, request = asked.arrays, asked.request
    if request.fix_racks:
        return []
    racks = int(arrays.rack.max()) + 1
    possible = len(np.unique(arrays.rack[asked.able]))
    # To return indices, numpy sorts; without them it hashes, which takes sixty times as long.
    pairs, _ = np.unique(arrays.part_of * racks + arrays.rack[arrays.holder], return_index=True)
    distinct = np.bincount(pairs // racks, minlength=len(arrays.names))
    after = {move.partition: move.after for move in moves}
    doubled = []
    for number in np.flatnonzero((distinct < np.minimum(arrays.counts, possible)) & arrays.settled).tolist():
        replicas = after.get(arrays.names[number], arrays.partitions[number].replicas)
        there = {int(arrays.rack[arrays.index[each]]) for each in replicas}
        if len(there) < min(len(replicas), possible):
            doubled.append(arrays.names[number])
    if not doubled:
        return []
    return [
        Note(
            text=f"{count(len(doubled), 'partition')} with two replicas in one rack though another has none",
            partitions=tuple(doubled),
            warning=True,
            advice="spread them: restow plan fix-racks, or --fix-racks with this plan",
        )
    ]


def _out_of_sync(asked: Asked) -> list[Note]:
    """Note partitions whose leader cannot change because a replica is out of sync."""
    request = asked.request
    if not (request.sheds or request.leaders):
        return []
    numbers = np.flatnonzero(asked.covered & asked.arrays.lagging & ~asked.must).tolist()
    if not numbers:
        return []
    return [
        Note(
            text=f"{len(numbers):,} partitions have a replica that lags behind: their leaders stay",
            partitions=tuple(asked.arrays.names[number] for number in numbers),
            warning=True,
            advice="wait until all replicas are in sync, and plan again",
        )
    ]


def _uneven_dirs(snapshot: Snapshot, asked: Asked, moves: Sequence[Move]) -> list[Note]:
    """Note log dirs that were to be balanced and are not."""
    band = asked.request.bands.get("log_dirs", DEFAULT_BAND)
    if not asked.request.disks or band is None:
        return []
    several = [broker for broker in snapshot.brokers if len(broker.log_dirs) > 1]
    if not several:
        return [
            Note(text="no broker tells of more than one log dir: there is nothing to even out", warning=True)
        ]
    held = {each.name: each.after_bytes or 0 for each in by_log_dir(snapshot, asked.arrays, moves)}
    uneven = []
    for broker in several:
        dirs = broker.working_dirs
        known = all(each.total_bytes for each in dirs)
        weight = {each.path: float(each.total_bytes or 1) if known else 1.0 for each in dirs}
        has = {each.path: held.get(f"{broker.id}:{each.path}", 0) for each in dirs}
        for path, strength in weight.items():
            share = sum(has.values()) * strength / sum(weight.values())
            if abs(has[path] - share) > band * share * (1 + 1e-9):
                uneven.append(f"{broker.id}:{path} at {has[path] / share:.2f} × its share")
    if not uneven:
        return []
    return [
        Note(
            text=f"{len(uneven):,} log dirs stay out of band: {some(uneven, _NAMED)}. Single "
            "replicas are too large for the band, do not fit, or must not be touched",
            warning=True,
        )
    ]


def _kept_from(asked: Asked) -> list[Note]:
    """Note brokers and log dirs that get nothing because they are cordoned."""
    arrays, request = asked.arrays, asked.request
    told = sorted({*request.cordon, *(arrays.brokers[at] for at in np.flatnonzero(arrays.cordoned).tolist())})
    found = []
    if told:
        text = f"broker {', '.join(map(str, told))} is cordoned: it gets no replicas"
        found.append(Note(text=text))
    some = [f"{path} of broker {broker}" for broker, path in arrays.cordoned_dirs if broker not in told]
    if some:
        found.append(Note(text=f"cordoned log dirs get no replicas: {', '.join(some)}"))
    return found


def _internal(asked: Asked) -> list[Note]:
    """Note internal topics that a wildcard has left out."""
    arrays, request = asked.arrays, asked.request
    names = sorted({arrays.names[at].topic for at in np.flatnonzero(arrays.internal).tolist()})
    meant = [name for name in names if request.replication_factor_of(name) is not None]
    kept = [name for name in meant if request.replication_factor_of(name, internal=True) is None]
    if not kept:
        return []
    return [
        Note(
            text=f"internal topics keep their replication factor: {', '.join(kept)}",
            advice="name them in --topics to change them too",
        )
    ]


def _too_few_racks(asked: Asked) -> list[Note]:
    settled = asked.arrays.settled
    counts = np.diff(asked.slots.offsets)[settled]
    racks = len(np.unique(asked.arrays.rack[asked.able]))
    more = counts > racks
    if not more.any():
        return []
    return [
        Note(
            text=f"{int(more.sum()):,} partitions have more replicas than there are racks ({racks}): "
            f"{int(counts.max()) - racks} more would keep all of them apart"
        )
    ]
