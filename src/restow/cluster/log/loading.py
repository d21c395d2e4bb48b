"""Loads a partition's directory: keeps complete data, removes leftovers of a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.log.checkpoint import LEADER_EPOCHS, decode_epochs
from restow.cluster.log.epochs import LeaderEpochs
from restow.cluster.log.errors import InvalidCheckpoint
from restow.cluster.log.producer_batches import note_producer
from restow.cluster.log.producers import ProducerStates
from restow.cluster.log.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, Segment, file_name
from restow.cluster.log.transactions import TXN_INDEX_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.log.config import LogConfig
    from restow.runtime.disk import Disk

SNAPSHOT_SUFFIX = ".snapshot"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"

_OF_SEGMENTS = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)


def load_segments(disk: Disk, directory: str, config: LogConfig, recovery_point: int | None) -> list[Segment]:
    """Return the segments in order, at least one.

    `recovery_point` is None after a clean shutdown. Otherwise everything from there on is checked, and the
    log ends before the first batch that is torn, corrupt or out of order.
    """
    _finish_swaps(disk, directory)
    bases = _tidy(disk, directory)
    segments = [Segment(disk, directory, base) for base in bases]
    if recovery_point is not None:
        segments = _recovered(segments, config, recovery_point)
    if not segments:
        segments = [Segment(disk, directory, 0, create_later=True)]
    return segments


def _recovered(segments: list[Segment], config: LogConfig, recovery_point: int) -> list[Segment]:
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        if following is not None and following <= recovery_point:
            continue
        cut = segment.recover(config.index_interval_bytes)
        if cut or (following is not None and segment.next_offset > following):
            for lost in segments[number + 1 :]:
                lost.remove()
            return segments[: number + 1]
    return segments


def _tidy(disk: Disk, directory: str) -> list[int]:
    """Return the base offsets of all segments. Orphaned and half-written files are removed."""
    names = disk.list(directory)
    bases = [int(name[: -len(LOG_SUFFIX)]) for name in names if _is_numbered(name, LOG_SUFFIX)]
    known = {file_name(base, suffix) for base in bases for suffix in _OF_SEGMENTS}
    for name in names:
        stray = any(_is_numbered(name, suffix) for suffix in _OF_SEGMENTS) and name not in known
        if stray or name.endswith((CLEANED_SUFFIX, ".tmp", ".deleted")):
            disk.remove(f"{directory}/{name}")
    return sorted(bases)


def _finish_swaps(disk: Disk, directory: str) -> None:
    """Finish a compaction that had written a segment but not yet replaced the old ones.

    A `.swap` is named by the offsets it replaces: `first-behind.log.swap`.
    """
    for name in disk.list(directory):
        if not name.endswith(SWAP_SUFFIX):
            continue
        first, _, behind = name.removesuffix(LOG_SUFFIX + SWAP_SUFFIX).partition("-")
        finish_swap(disk, directory, int(first), int(behind))


def swap_name(first: int, behind: int) -> str:
    """Return the file that replaces all segments from one base offset to before another."""
    return f"{first:020d}-{behind:020d}{LOG_SUFFIX}{SWAP_SUFFIX}"


def finish_swap(disk: Disk, directory: str, first: int, behind: int) -> None:
    """Remove the replaced segments and rename the swap file. May be repeated after a crash at any point."""
    for name in disk.list(directory):
        stem, _, suffix = name.partition(".")
        if f".{suffix}" in (LOG_SUFFIX, *_OF_SEGMENTS) and stem.isdecimal() and first <= int(stem) < behind:
            disk.remove(f"{directory}/{name}")
    disk.rename(f"{directory}/{swap_name(first, behind)}", f"{directory}/{file_name(first, LOG_SUFFIX)}")


def load_epochs(
    disk: Disk, directory: str, segments: Sequence[Segment], *, clean: bool
) -> tuple[LeaderEpochs, bool]:
    """Return the checkpointed leader epochs, completed from the batches after a crash.

    Also return whether the checkpoint must be written again.
    """
    path = f"{directory}/{LEADER_EPOCHS}"
    epochs = LeaderEpochs()
    sound = False
    if disk.exists(path):
        try:
            epochs = LeaderEpochs(decode_epochs(disk.read_bytes(path)))
            sound = True
        except InvalidCheckpoint:
            epochs = LeaderEpochs()
    if clean and sound:
        return epochs, False
    completed = False
    known_to = epochs.entries[-1].start_offset if epochs.entries else -1
    for segment in segments:
        if segment.next_offset > known_to:
            for _, header in segment.headers():
                if header.leader_epoch > epochs.latest:
                    completed |= epochs.assign(header.leader_epoch, header.base_offset)
    return epochs, completed


def load_producers(
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    end_offset: int,
    recovery_point: int | None = None,
) -> ProducerStates:
    """Load the newest usable producer snapshot and the batches after it. Remove other snapshots.

    Batches are replayed from the first segment on that was checked after a crash, because its index of
    aborted transactions may have lost entries.
    """
    producers = ProducerStates()
    since = segments[0].base_offset
    latest = end_offset
    if recovery_point is not None:
        latest = max((each.base_offset for each in segments if each.base_offset <= recovery_point), default=0)
    for offset in reversed(snapshots(disk, directory)):
        path = f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
        if offset <= latest:
            try:
                producers.decode(disk.read_bytes(path))
                since = offset
                break
            except InvalidCheckpoint:
                producers.clear()
        disk.remove(path)
    if since >= end_offset:
        return producers
    for segment in segments:
        if segment.next_offset <= since:
            continue
        start = segment.position_of(since) or 0
        for position, header in segment.headers(start):
            if header.producer_id >= 0 and header.base_offset >= since:
                batch = segment.batch_at(position, header) if header.is_control else b""
                note_producer(producers, segment, header, batch)
    return producers


def write_snapshot(disk: Disk, directory: str, end_offset: int, producers: ProducerStates) -> None:
    """Write a producer snapshot for a log's end. Two are kept, in case the newer one is lost."""
    path = f"{directory}/{file_name(end_offset, SNAPSHOT_SUFFIX)}"
    disk.write_atomically(path, producers.encode(), durable=False)
    for offset in snapshots(disk, directory)[:-2]:
        disk.remove(f"{directory}/{file_name(offset, SNAPSHOT_SUFFIX)}")


def snapshots(disk: Disk, directory: str) -> list[int]:
    """Return the offsets of the producer snapshots, rising."""
    names = disk.list(directory)
    return sorted(int(name.partition(".")[0]) for name in names if _is_numbered(name, SNAPSHOT_SUFFIX))


def _is_numbered(name: str, suffix: str) -> bool:
    stem, _, rest = name.partition(".")
    return f".{rest}" == suffix and stem.isdecimal()
