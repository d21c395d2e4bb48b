"""Network faults of the ZooKeeper store: no server, a lost connection, a halted server."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

from harness.process import free_ports
from restow.cluster.store import (
    Create,
    NodeChange,
    SessionExpired,
    StoreUnavailable,
    TooLarge,
    WatchEvent,
)
from restow.cluster.store.zookeeper import ZooKeeperStore
from restow.runtime.clock import SystemClock
from tests.conformance.stores import Remote, played

if TYPE_CHECKING:
    from harness.zookeeper import ZooKeeper

pytestmark = pytest.mark.jvm

CUT_OFF_S = 4.0
"""Timeout of a session that should expire, but not before it is open."""


class SkippingClock(SystemClock):
    """A clock that is set forward, as if the process had stood still meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.skipped_s


def cut(store: ZooKeeperStore) -> None:
    """Break the connection, which kazoo opens again."""
    store._link.client._connection._socket.shutdown(socket.SHUT_RDWR)


@played
async def test_connect_fails_without_a_server() -> None:
    with (
        free_ports(1) as (port,),
        pytest.raises(StoreUnavailable, match="no ZooKeeper answered at"),
    ):
        await ZooKeeperStore.connect(f"127.0.0.1:{port}", connect_timeout_s=0.3)


@played
async def test_too_large_request_is_refused(remote: Remote) -> None:
    store = await remote.session()
    with pytest.raises(TooLarge, match="1100077 bytes"):
        await store.create("/large-enough", b"x" * 1_100_000)
    pieces = [(Create(f"/{number}", b"x" * 300_000),) for number in range(8)]
    assert [*await store.multi_each(pieces)] == [(f"/{number}",) for number in range(8)]
    await remote.stop()


@played
async def test_session_survives_a_lost_connection(remote: Remote) -> None:
    store = await remote.session()
    assert isinstance(store, ZooKeeperStore)
    await store.create("/mine", ephemeral=True)
    events: list[WatchEvent] = []
    expiries: list[None] = []
    store.on_expired(lambda: expiries.append(None))
    await store.watch_data("/mine", events.append)
    cut(store)
    while not events:
        await asyncio.sleep(0.005)
    assert events == [WatchEvent(NodeChange.UNKNOWN, "/mine")]
    assert (await store.get("/mine")).stat.ephemeral_owner == store.session_id
    await store.watch_data("/mine", events.append)
    await store.set("/mine", b"x")
    assert events[1:] == [WatchEvent(NodeChange.SET, "/mine")]
    assert expiries == []
    await remote.stop()


@played
async def test_session_is_in_doubt_after_a_standstill_until_the_server_answers(remote: Remote) -> None:
    clock = SkippingClock()
    store = await ZooKeeperStore.connect(remote.address, timeout_s=60.0, clock=clock)
    remote.sessions.append(store)
    await store.confirm()
    assert not store.in_doubt
    clock.skipped_s += 59.0
    assert not store.in_doubt
    clock.skipped_s += 61.0
    assert store.in_doubt
    await store.confirm()
    assert not store.in_doubt
    await remote.stop()
    clock.skipped_s += 61.0
    with pytest.raises(SessionExpired):
        await store.confirm()


@played
async def test_requests_wait_for_a_halted_server(remote: Remote, real_zookeeper: ZooKeeper) -> None:
    store = await remote.session()
    with real_zookeeper.paused():
        creating = asyncio.create_task(store.create("/a"))
        await asyncio.sleep(0.2)
        assert not creating.done()
    assert await creating == "/a"
    await remote.stop()


@played
async def test_session_expires_when_disconnected_for_too_long(
    remote: Remote, real_zookeeper: ZooKeeper
) -> None:
    store = await ZooKeeperStore.connect(remote.address, timeout_s=CUT_OFF_S)
    other = await remote.session()
    await store.create("/mine", ephemeral=True)
    expired = asyncio.Event()
    store.on_expired(expired.set)
    with real_zookeeper.paused():
        await expired.wait()
        with pytest.raises(SessionExpired):
            await store.set("/mine", b"still me")
    while True:
        try:
            if await other.exists("/mine") is None:
                break
        except StoreUnavailable:
            continue
        await asyncio.sleep(0.02)
    await store.close()
    await remote.stop()
