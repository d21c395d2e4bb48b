"""Run some brokers in a process of their own: `python embedded_child.py FOLDER BROKERS [WORD…]`.

A word is a broker config as NAME=VALUE, or the name of a listener. The process prints in one line of
JSON where the brokers listen, and runs until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys

# kafka-python imports these where they are installed. The tests need them; `pip install restow` brings none.
for _name in ("crc32c", "lz4", "snappy", "zstandard"):
    sys.modules[_name] = None  # type: ignore[assignment]

from restow.cluster.embedded import EmbeddedCluster  # noqa: E402
from restow.runtime.loop import run  # noqa: E402


async def serve(folder: str, brokers: int, *settings: str) -> None:
    """Serve until the process is killed."""
    properties = dict(setting.split("=", 1) for setting in settings if "=" in setting)
    listeners = [setting for setting in settings if "=" not in setting]
    async with EmbeddedCluster(
        brokers=brokers, data=folder, properties=properties, listeners=listeners
    ) as cluster:
        print(json.dumps({"bootstrap": cluster.bootstrap, "at": dict(cluster.listeners)}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    run(serve(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
