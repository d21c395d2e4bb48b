"""The clock of a rehearsal: virtual, and asleep until something happens.

A run looks at the cluster many times per second. In a rehearsal it is known when the next copy ends, so the
looks in between, which would find nothing, are left out.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from restow.sim.clock import EPOCH_MS, NodeClock

if TYPE_CHECKING:
    from restow.rehearse.cluster import RehearsedCluster

_LATE = 0.05
_LONGEST_S = 30.0
_STALLED_S = 120.0
"""How long the rehearsal goes on when nothing will happen any more: guards and stalls show meanwhile."""


class NothingMoves(Exception):
    """The run would wait forever: for steps that cannot end, or for a cluster that is not well again."""


class RehearsalClock(NodeClock):
    """A clock on the virtual loop that starts at a time of day."""

    def __init__(
        self, cluster: RehearsedCluster, start_ms: int, look_every_s: float, patience_s: float
    ) -> None:
        """Take how often a run looks at the whole cluster; no sleep is longer while something moves.

        If nothing is under way for `patience_s`, the run waits for what no rehearsal brings.
        """
        super().__init__(skew_ms=start_ms - EPOCH_MS)
        self._patience_s = patience_s
        self._cluster, self._look_every_s = cluster, look_every_s

    async def pass_time(self, seconds: float) -> None:
        """Let exactly this much time pass, as an answer does that is on its way."""
        await super().sleep(seconds)

    async def sleep(self, seconds: float) -> None:
        """Sleep for so long, or until the next thing happens if that is later."""
        now_s, movement = self.monotonic_s(), self._cluster.movement
        quiet_s = now_s - self._cluster.quiet_since_s
        stalled = movement.under_way and movement.next_s == inf and quiet_s > _STALLED_S
        if stalled or (not movement.under_way and quiet_s > self._patience_s):
            raise NothingMoves
        if movement.under_way:
            longer_s = min(movement.next_s - now_s, self._look_every_s)
        else:
            longer_s = min(_LATE * quiet_s, _LONGEST_S)
        await super().sleep(max(seconds, longer_s))
