"""Where a run stands, in a file beside its journal: `restow watch` shows what the run itself knows."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from restow.execute.progress.standing import RunStatus, standing_of
from restow.execute.run.executor import RunListener

if TYPE_CHECKING:
    from restow.runtime.disk import Disk

FILE_NAME = "standing.json"


def posting(disk: Disk, folder: str, watcher: RunListener) -> RunListener:
    """Return a watcher that posts every standing before the other one hears of it."""

    def standing(now: RunStatus) -> None:
        with suppress(OSError):  # a disk that is full ends the run when its journal is written, not here
            post(disk, folder, now)
        watcher.standing(now)

    return RunListener(event=watcher.event, standing=standing)


def post(disk: Disk, folder: str, standing: RunStatus) -> None:
    """Replace what was there. Nobody depends on it, so it need not survive the machine."""
    data = json.dumps(standing.document()).encode()
    disk.write_atomically(f"{folder}/{FILE_NAME}", data, durable=False)


def posted(disk: Disk, folder: str) -> RunStatus | None:
    """Return where the run stood when it last said so; None if it never did, or the file is damaged."""
    path = f"{folder}/{FILE_NAME}"
    try:
        return standing_of(json.loads(disk.read_bytes(path))) if disk.exists(path) else None
    except (OSError, KeyError, TypeError, ValueError):
        return None
