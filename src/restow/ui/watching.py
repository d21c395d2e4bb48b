"""Look at the cluster again and again, and remember the last answer while it is away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from restow.client import Unreachable
from restow.client.errors import LoginRefused
from restow.connection import Cluster
from restow.errors import InvalidInput, RestowError
from restow.model import Plan
from restow.plan.explain.causes import causes_of
from restow.plan.explain.explain import explain
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from restow.runtime.memory import give_back
from restow.ui.groups import look_at_groups
from restow.ui.lake import LakeLook, LakeWatch
from restow.ui.sums import sums_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.client import ConnectionSettings
    from restow.model import Snapshot
    from restow.model.load import LoadModel
    from restow.plan.explain.causes import BandCause
    from restow.plan.explain.explain import Explanation, Unmet
    from restow.runtime.clock import Clock
    from restow.ui.groups import GroupsLook
    from restow.ui.sums import ClusterSums

_LEAST_S, _TIMES_AS_LONG = 3.0, 4.0
"""The pause between two looks: at least so long, and so many times as long as a look takes."""
_AFTER_REFUSAL_S = 300.0
_CAUSES = 20
"""The partitions are named of so many brokers out of band, the worst."""
_TAKES_LONG = "the cluster answers, but not with all that was asked"


class WatchedCluster(Protocol):
    """Where snapshots come from. The calls block."""

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now."""

    def groups(self, now_ms: int) -> GroupsLook | None:
        """Return its consumer groups; None if they are not known."""

    def close(self) -> None:
        """Hang up."""


class LiveCluster:
    """A cluster to connect to, again after each failure."""

    def __init__(self, settings: ConnectionSettings, journal: str) -> None:
        self._settings, self._journal = settings, journal
        self._cluster: Cluster | None = None

    def snapshot(self) -> Snapshot:
        if self._cluster is None:
            self._cluster = Cluster(self._settings, self._journal)
        try:
            return self._cluster.snapshot()
        except BaseException:
            self.close()
            raise

    def groups(self, now_ms: int) -> GroupsLook | None:
        if self._cluster is None:
            return None
        return self._cluster.ask(lambda admin: look_at_groups(admin, now_ms))

    def close(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()


@dataclass(frozen=True, kw_only=True)
class ClusterLook:
    """What one look has shown, and since when there is no newer one."""

    snapshot: Snapshot | None = None
    sums: ClusterSums | None = None
    bands: Explanation | None = None
    """How far brokers are from their shares; None if that cannot be said now."""
    causes: tuple[tuple[Unmet, Sequence[BandCause]], ...] = ()
    """The brokers that are furthest out of band, with the partitions that put them there."""
    groups: GroupsLook | None = None
    lake: LakeLook = field(default_factory=LakeLook)
    away_since_ms: int | None = None
    why_away: str = ""
    tries: int = 0
    """How many looks have failed since the cluster is away."""

    @property
    def cluster_id(self) -> str | None:
        return None if self.snapshot is None else self.snapshot.cluster_id


def look_of(snapshot: Snapshot, lake: LakeLook | None = None) -> ClusterLook:
    """Compute what pages show of a snapshot. It takes a second for 200,000 partitions."""
    lake = lake or LakeLook()
    bands, causes = _bands(snapshot, lake.load)
    sums = sums_of(snapshot, lake.load)
    return ClusterLook(snapshot=snapshot, sums=sums, bands=bands, causes=causes, lake=lake)


def _bands(
    snapshot: Snapshot, load: LoadModel | None
) -> tuple[Explanation | None, tuple[tuple[Unmet, Sequence[BandCause]], ...]]:
    """Return how far from even the cluster is now: what a plan that moves nothing would leave."""
    nothing = Plan(cluster_id=snapshot.cluster_id, created_ms=snapshot.taken_ms, moves=())
    request = PlanRequest(balance=True)
    try:
        asked = ask(snapshot, load, request)
        told = explain(snapshot, load, nothing, request, asked)
    except (InvalidInput, ValueError):
        return None, ()
    worst = sorted(told.unmet, key=lambda each: -abs(each.ratio - 1))[:_CAUSES]
    return told, tuple(causes_of(asked, worst))


class ClusterWatch:
    """The latest look at the cluster."""

    def __init__(
        self,
        source: WatchedCluster,
        clock: Clock,
        changed: Callable[[], object],
        lake: LakeWatch | None = None,
    ) -> None:
        self._source, self._clock, self._changed = source, clock, changed
        self._lake = lake or LakeWatch()
        self.last = ClusterLook()

    async def keep_looking(self) -> None:
        """Look until cancelled."""
        try:
            while True:
                began_s = self._clock.monotonic_s()
                pause_s = await self.look()
                took_s = self._clock.monotonic_s() - began_s
                await self._clock.sleep(max(pause_s, took_s * _TIMES_AS_LONG))
        finally:
            await asyncio.to_thread(self._source.close)

    async def look(self) -> float:
        """Look once, and return how long to pause at least."""
        try:
            self.last = await asyncio.to_thread(self._look)
        except LoginRefused as error:
            self._is_away(str(error))
            return _AFTER_REFUSAL_S
        except (RestowError, OSError) as error:
            self._is_away(str(error) if isinstance(error, Unreachable) else f"{_TAKES_LONG}: {error}")
        self._changed()
        return _LEAST_S

    def _look(self) -> ClusterLook:
        snapshot = self._source.snapshot()
        before = self.last
        lake = self._lake.refresh(snapshot.cluster_id)
        if before.snapshot is snapshot and before.lake is lake and before.away_since_ms is None:
            return before
        look = look_of(snapshot, lake)
        try:
            groups = self._source.groups(self._clock.now_ms())
        except RestowError:  # the cluster answers, but not this: what was seen last stays, with its time
            groups = before.groups
        give_back()
        return replace(look, groups=groups)

    def _is_away(self, why: str) -> None:
        now_ms = self._clock.now_ms()
        last = self.last
        since_ms = now_ms if last.away_since_ms is None else last.away_since_ms
        self.last = replace(last, away_since_ms=since_ms, why_away=why, tries=last.tries + 1)
