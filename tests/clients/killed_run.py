"""A run that is killed at a journal entry: `killed_run.py BOOTSTRAP ROOT PLAN ENTRY before|after`.

`after` kills it when the entry is on the disk but its announcement is not carried out; `before` kills it when
all announcements so far are carried out but the next entry is not written.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from restow.client import ConnectionSettings, connected
from restow.execute.journal.journal import Journal
from restow.execute.progress.status import RunListener
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, execute
from restow.execute.throttle.throttles import ThrottleRates
from restow.plan.files.text import loads
from restow.runtime.clock import SystemClock
from restow.runtime.disk import SystemDisk


def die_at(number: int, when: str) -> None:
    write = Journal.write

    def killed(self: Journal, kind: str, **facts: Any) -> Any:
        if when == "before" and len(self.entries) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        entry = write(self, kind, **facts)
        if when == "after" and entry.number == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return entry

    Journal.write = killed  # type: ignore[method-assign]


async def main(bootstrap: str, root: str, plan: str) -> None:
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        world = RunContext(admin=admin, clock=SystemClock(), disk=SystemDisk(), root=root)
        options = RunOptions(throttle=ThrottleRates(rate=3_000_000), look_every_s=0.05)
        watcher = RunListener(event=lambda _: None, status=lambda _: None)
        await execute(world, loads(Path(plan).read_text()), options, watcher)


if __name__ == "__main__":
    die_at(int(sys.argv[4]), sys.argv[5])
    asyncio.run(main(*sys.argv[1:4]))
