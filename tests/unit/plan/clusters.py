"""Snapshots to plan on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GB = 10**9


def snapshot(
    topics: Mapping[str, Sequence[tuple[int, ...]]],
    *,
    brokers: Sequence[int] = range(6),
    size: int = GB,
    total: int | None = 1000 * GB,
    used: Mapping[int, int] | None = None,
    dirs: tuple[str, ...] = ("/d",),
    least: int = 1,
    cluster_id: str = "here",
) -> Snapshot:
    """Return topics with the replicas of their partitions: in sync, led by the first, in the first log
    dir."""
    in_use = used or {}
    return Snapshot(
        cluster_id=cluster_id,
        taken_ms=0,
        controller=brokers[0],
        brokers=tuple(
            LiveBroker(
                id=number,
                host="h",
                port=1,
                log_dirs=tuple(
                    LogDir(
                        path=path,
                        total_bytes=total,
                        usable_bytes=total and max(0, total - in_use.get(number, 0)),
                    )
                    for path in dirs
                ),
            )
            for number in brokers
        ),
        topics=tuple(
            Topic(
                name=name,
                min_insync_replicas=least,
                partitions=tuple(
                    Partition(
                        number=number,
                        replicas=replicas,
                        isr=replicas,
                        leader=replicas[0],
                        copies=tuple(Copy(broker=b, log_dir=dirs[0], size_bytes=size) for b in replicas),
                    )
                    for number, replicas in enumerate(assignments)
                ),
            )
            for name, assignments in sorted(topics.items())
        ),
    )
