"""The whole tree of a cluster in ZooKeeper, in a form in which the trees of two clusters can be compared.

`LEFT_OUT` names what is not compared, and why. Everything else must be equal: which nodes there are, and
every field in them.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from restow.cluster.store import NoNode
from restow.cluster.store.znodes import ControllerEpoch
from tests.apache.two_sides import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.store import Store

STATE = r"/brokers/topics/[^/]+/partitions/\d+/state"
CHANGES = "/config/changes"
LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    r"/brokers/ids/\d+": {
        "timestamp": "when the broker started",
        "port": "the broker took a free port",
        "endpoints": "they have the port; their names and hosts are compared",
    },
    r"/brokers/topics/[^/]+": {"topic_id": "drawn at random"},
    r"/cluster/id": {"id": "drawn at random"},
    r"/controller": {"timestamp": "when it was elected"},
    r"/latest_producer_id_block": {
        "broker": "the broker that a producer happened to ask",
        "block_start": "so many brokers were asked before",
        "block_end": "so many brokers were asked before",
    },
}
AFTER_KILLS = {
    STATE: {
        "leader_epoch": "counts elections; a move has more or fewer of them before the kill",
        "controller_epoch": "a state has the epoch of who wrote it last, before the kill or after",
    }
}


async def controller_epoch(store: Store) -> int:
    """Return the epoch of the present controller."""
    return ControllerEpoch.decode((await store.get(ControllerEpoch.PATH)).data).epoch


async def settled_tree(store: Store, *, since: int, after_kills: bool) -> dict[str, Any]:
    """Return the tree once it does not change any more: notes of changes are read and removed."""
    before: dict[str, Any] | None = None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            tree = None
            with suppress(NoNode):
                tree = await _comparable_tree(store, since=since, after_kills=after_kills)
            if tree is not None and tree == before:
                return tree
            before = tree
            await asyncio.sleep(1)


async def _comparable_tree(store: Store, *, since: int, after_kills: bool) -> dict[str, Any]:
    """Return all nodes by path, without what is left out. Controller epochs count from `since`."""
    left_out = {**LEFT_OUT, **(AFTER_KILLS if after_kills else {})}
    found: dict[str, Any] = {}
    changes: list[Any] = []
    for path, data in (await _tree(store, "/")).items():
        if path == ControllerEpoch.PATH:
            found[path] = int(data) - since
        elif path.startswith(f"{CHANGES}/"):
            changes.append((path, json.loads(data)))
        elif data:
            found[path] = _comparable(path, json.loads(data), left_out, since)
        else:
            found[path] = None
    found[CHANGES] = [value for _, value in sorted(changes, key=lambda change: str(change[0]))]
    return found


def _comparable(path: str, value: dict[str, Any], left_out: Mapping[str, Any], since: int) -> dict[str, Any]:
    if "endpoints" in value:
        value["without ports"] = [re.sub(r":\d+$", "", each) for each in value["endpoints"]]
    if "controller_epoch" in value:
        value["controller_epoch"] -= since
    if "isr" in value:
        value["isr"] = sorted(value["isr"])
    for pattern, fields in left_out.items():
        if re.fullmatch(pattern, path):
            value = {name: None if name in fields else it for name, it in value.items()}
    return value


async def _tree(store: Store, path: str) -> dict[str, bytes]:
    """Return every node's data by path, without ZooKeeper's own."""
    found = {path: (await store.get(path)).data}
    for name in await store.children(path):
        if (path, name) != ("/", "zookeeper"):
            found |= await _tree(store, f"{path.rstrip('/')}/{name}")
    return found
