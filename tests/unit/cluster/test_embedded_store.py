"""Features of the embedded store alone: a file that outlives it, and sessions that expire by a clock."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from restow.cluster.store import Create, NodeChange, SessionExpired, StoreUnavailable, WatchEvent
from restow.cluster.store.embedded import EmbeddedStore
from tests.clock import HandClock

if TYPE_CHECKING:
    from pathlib import Path

WRITER = """
import asyncio, sys
from pathlib import Path
from restow.cluster.store.embedded import EmbeddedStore

async def main():
    store = EmbeddedStore(Path(sys.argv[1]), fsync=False).session()
    await store.create("/me", ephemeral=True)
    number = 0
    while True:
        made = [store.create("/n_", b"%d" % (number + each), sequential=True) for each in range(7)]
        for path in await asyncio.gather(*made):
            print(path, flush=True)
        number += 7

asyncio.run(main())
"""


@pytest.mark.parametrize("fsync", [True, False])
def test_persistent_nodes_keep_data_and_counters_after_reopening(tmp_path: Path, fsync: bool) -> None:
    file = tmp_path / "store.sqlite"

    async def first() -> tuple[object, ...]:
        server = EmbeddedStore(file, fsync=fsync)
        store = server.session()
        await store.create("/a", b"1")
        await store.set("/a", b"2")
        await store.create("/a/n_", sequential=True)
        await store.create("/a/n_", ephemeral=True, sequential=True)
        await store.create("/gone")
        await store.delete("/gone")
        found = await store.get_each(["/a/n_0000000000", "/gone"])
        mzxid = (await store.get("/a")).stat.mzxid
        await server.close()
        return (*found, mzxid)

    async def second() -> tuple[object, ...]:
        server = EmbeddedStore(file, fsync=fsync)
        store = server.session()
        assert await store.children("/") == ("a",)
        assert await store.children("/a") == ("n_0000000000",)
        data, stat = await store.get("/a")
        assert (data, stat.version, stat.cversion) == (b"2", 1, 3)
        found = await store.get_each(["/a/n_0000000000", "/gone"])
        assert await store.create("/a/n_", sequential=True) == "/a/n_0000000002"
        made = await store.get("/a/n_0000000002")
        assert made.stat.czxid > stat.mzxid
        await server.close()
        return (*found, stat.mzxid)

    assert asyncio.run(first()) == asyncio.run(second())


def test_acknowledged_writes_survive_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline().decode().strip() for _ in range(500)]
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += writer.stdout.read().decode().split("\n")[:-1]

    async def read() -> None:
        server = EmbeddedStore(file)
        store = server.session()
        nodes = await store.get_each([path for path in acknowledged if path])
        assert [node and node.data for node in nodes] == [b"%d" % number for number in range(len(nodes))]
        assert await store.exists("/me") is None
        await server.close()

    asyncio.run(read())


def test_store_refuses_file_that_another_store_has_open(tmp_path: Path) -> None:
    async def play() -> None:
        server = EmbeddedStore(tmp_path / "store.sqlite")
        with pytest.raises(StoreUnavailable, match="held by another process"):
            EmbeddedStore(tmp_path / "store.sqlite")
        await server.close()
        await EmbeddedStore(tmp_path / "store.sqlite").close()

    asyncio.run(play())


def test_store_refuses_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database at all, but long enough to be looked at\n" * 40)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        EmbeddedStore(tmp_path / "text")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        EmbeddedStore(tmp_path / "no such folder" / "store.sqlite")


def test_store_refuses_file_of_a_later_format(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnavailable, match="format 99"):
        EmbeddedStore(tmp_path / "store.sqlite")


def test_store_undoes_changes_when_the_disk_is_full(tmp_path: Path) -> None:
    async def play() -> None:
        server = EmbeddedStore(tmp_path / "store.sqlite", fsync=False)
        store, leaver = server.session(), server.session()
        await store.create("/a", b"before")
        await leaver.create("/leaver", ephemeral=True)
        assert server._database is not None
        limit = server._database._connection.execute
        limit("PRAGMA max_page_count = 12")
        events: list[WatchEvent] = []
        await store.watch_data("/a", events.append)
        answers = await asyncio.gather(
            store.set("/a", b"after"),
            leaver.close(),
            store.create("/large", b"x" * 100_000),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
        assert (await store.get("/a")).data == b"before"
        assert await store.children("/") == ("a",)
        assert events == [WatchEvent(NodeChange.UNKNOWN, "/a")]
        limit("PRAGMA max_page_count = 1000000")
        await store.multi([Create("/large", b"x" * 100_000)])
        await server.close()
        again = EmbeddedStore(tmp_path / "store.sqlite")
        assert await again.session().children("/") == ("a", "large")
        await again.close()

    asyncio.run(play())


def test_session_expires_when_its_clock_stops() -> None:
    async def play() -> None:
        servers, brokers = HandClock(0.0), HandClock(0.0)
        server = EmbeddedStore(clock=servers)
        store = server.session(timeout_s=6, clock=brokers)
        other = server.session(timeout_s=1_000_000)
        expiries: list[str] = []
        store.on_expired(lambda: expiries.append("expired"))
        await store.create("/me", ephemeral=True)
        for _ in range(20):
            brokers.advance_at_once(2)
            servers.advance_at_once(2)
        assert expiries == []
        servers.advance_at_once(3.75)  # the last beat came before the server's last two seconds
        await asyncio.sleep(0)
        assert await other.exists("/me") is not None
        servers.advance_at_once(0.25)
        async with asyncio.timeout(60):
            while not expiries:
                await asyncio.sleep(0.01)
        assert expiries == ["expired"]
        assert await other.exists("/me") is None
        with pytest.raises(SessionExpired):
            await store.get("/")
        await server.close()
        brokers.advance_at_once(100)
        servers.advance_at_once(100)
        assert expiries == ["expired"]

    asyncio.run(play())


def test_closed_store_opens_no_sessions() -> None:
    async def play() -> None:
        server = EmbeddedStore()
        store = server.session()
        await server.close()
        with pytest.raises(SessionExpired):
            await store.get("/")
        with pytest.raises(StoreUnavailable):
            server.session()

    asyncio.run(play())
