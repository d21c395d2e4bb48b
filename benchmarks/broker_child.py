"""Run one broker in a process of its own: `python broker_child.py ID ZOOKEEPER FOLDER`.

The process prints in one line of JSON where the broker listens, and runs until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys

# kafka-python imports these where they are installed. The tests need them; `pip install restow` brings none.
for _name in ("crc32c", "lz4", "snappy", "zstandard"):
    sys.modules[_name] = None  # type: ignore[assignment]

from restow.cluster.broker.broker import BrokerOptions  # noqa: E402
from restow.cluster.standalone import StoreAddress, standalone  # noqa: E402
from restow.runtime.loop import run  # noqa: E402


async def serve(broker_id: int, zookeeper: str, folder: str) -> None:
    """Serve until the process is killed."""
    options = BrokerOptions(broker_id=broker_id, log_dirs=(folder,))
    broker = standalone(options, StoreAddress.parse(f"zookeeper://{zookeeper}"))
    await broker.start()
    print(json.dumps({"bootstrap": broker.address}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    run(serve(int(sys.argv[1]), *sys.argv[2:4]))
