"""A broker with two log dirs as a process: `python two_log_dirs.py FOLDER`. It prints its address."""

from __future__ import annotations

import asyncio
import sys

from restow.cluster.embedded import EmbeddedCluster
from restow.runtime.loop import run


async def serve(folder: str) -> None:
    """Serve until the process is ended."""
    async with EmbeddedCluster(1, log_dirs=2, data=folder, fsync=False) as cluster:
        sys.stdout.write(f"{cluster.bootstrap}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    run(serve(sys.argv[1]))
