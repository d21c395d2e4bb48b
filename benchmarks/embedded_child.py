"""A process of its own with some brokers in it: `python embedded_child.py FOLDER BROKERS`.

It says where the brokers listen in one line of JSON, and runs until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys

from restow.cluster.embedded import EmbeddedCluster
from restow.runtime.loop import run


async def serve(folder: str, brokers: int) -> None:
    """Serve until somebody ends the process."""
    async with EmbeddedCluster(brokers=brokers, data=folder) as cluster:
        print(json.dumps({"bootstrap": cluster.bootstrap}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    run(serve(sys.argv[1], int(sys.argv[2])))
