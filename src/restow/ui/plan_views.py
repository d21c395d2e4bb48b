"""What a plan changes by broker, in the whole cluster, from sums that are there already."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from restow.plan.explain.view import BrokerChange, Load, own_sizes

if TYPE_CHECKING:
    from restow.model import BrokerId, Snapshot
    from restow.ui.large_files import ShownPlan
    from restow.ui.sums import BrokerSum
    from restow.ui.watching import ClusterLook


def broker_changes(found: ShownPlan, look: ClusterLook) -> tuple[BrokerChange, ...]:
    """Return each broker before and after; without a snapshot of its cluster, of the plan's partitions alone.

    Before is what brokers have besides the plan's partitions, and these as they were when the plan was made.
    """
    snapshot, sums = look.snapshot, look.sums
    if snapshot is None or sums is None or snapshot.cluster_id != found.head.cluster_id:
        return found.view.brokers
    moving = _Moving(found, snapshot)
    alone = {each.broker: each for each in found.view.brokers}
    others = {each.id: each for each in sums.brokers}
    nothing = BrokerChange(
        broker=-1, before=Load(), after=Load(), received_bytes=0, sent_bytes=0, dir_bytes=0
    )
    changes = []
    for broker in sorted({*alone, *others}):
        own, rest = alone.get(broker, nothing), others.get(broker)
        changes.append(
            BrokerChange(
                broker=broker,
                before=moving.whole(broker, rest, own.before),
                after=moving.whole(broker, rest, own.after),
                received_bytes=own.received_bytes,
                sent_bytes=own.sent_bytes,
                dir_bytes=own.dir_bytes,
            )
        )
    return tuple(changes)


class _Moving:
    """What brokers have now of the plan's partitions."""

    def __init__(self, found: ShownPlan, snapshot: Snapshot) -> None:
        there = [each for name in found.moves.names() if (each := snapshot.partition(name)) is not None]
        self._replicas = Counter(chain.from_iterable([each.replicas for each in there]))
        self._preferred = Counter([each.replicas[0] for each in there])
        self._bytes: Counter[BrokerId] = Counter()
        for each in there:
            for broker, size in zip(each.replicas, own_sizes(each), strict=True):
                self._bytes[broker] += size or 0

    def whole(self, broker: BrokerId, now: BrokerSum | None, own: Load) -> Load:
        """Return what a broker has in all, where this is what it has of the plan's partitions."""
        if now is None:
            return own
        size = None
        if now.size_bytes is not None and own.size_bytes is not None:
            size = now.size_bytes - self._bytes[broker] + own.size_bytes
        return Load(
            size_bytes=size,
            replicas=now.replicas - self._replicas[broker] + own.replicas,
            preferred=now.preferred - self._preferred[broker] + own.preferred,
        )
