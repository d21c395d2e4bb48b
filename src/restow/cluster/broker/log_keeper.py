"""Background maintenance of a broker's logs in small steps: flush, retention, compaction, removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.cluster.log import LogManager
    from restow.runtime.clock import Clock

_LOOK_EVERY_S = 1.0


async def keep_logs(logs: LogManager, clock: Clock) -> None:
    """Run until cancelled. Only logs that are due are touched."""
    while True:
        due_ms = logs.next_due_ms
        if due_ms is not None and due_ms <= clock.now_ms():
            for _ in logs.tend():
                await clock.sleep(0)
        await clock.sleep(_LOOK_EVERY_S)
