"""Sessions: watches and ephemeral nodes, on both stores."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.store import CheckVersion, Delete, NodeChange, NoNode, SessionExpired, Set, WatchEvent
from tests.conformance.stores import played

if TYPE_CHECKING:
    from tests.conformance.stores import Server


async def seen(events: list[WatchEvent], count: int) -> list[WatchEvent]:
    """Wait until there are that many events. The test's time limit ends the wait."""
    while len(events) < count:
        await asyncio.sleep(0.005)
    return events


@played
async def test_data_watch_sees_the_next_change(server: Server) -> None:
    mine, other = await server.session(), await server.session()
    events: list[WatchEvent] = []

    async def after(change: Any) -> WatchEvent:
        await mine.watch_data("/a", events.append)
        before = len(events)
        await change
        return (await seen(events, before + 1))[-1]

    assert await after(other.create("/a")) == WatchEvent(NodeChange.CREATED, "/a")
    assert await after(other.set("/a", b"x")) == WatchEvent(NodeChange.SET, "/a")
    assert await after(mine.set("/a", b"y")) == WatchEvent(NodeChange.SET, "/a")
    await mine.watch_data("/a", events.append)
    await other.create("/a/child")
    await other.delete("/a/child")
    assert await after(other.delete("/a")) == WatchEvent(NodeChange.DELETED, "/a")
    assert len(events) == 4


@played
async def test_child_watch_sees_created_and_deleted_children(server: Server) -> None:
    mine, other = await server.session(), await server.session()
    events: list[WatchEvent] = []
    await other.create("/a")
    await mine.watch_children("/a", events.append)
    await other.set("/a", b"not a child")
    await other.create("/a/b")
    assert await seen(events, 1) == [WatchEvent(NodeChange.CHILDREN, "/a")]
    await mine.watch_children("/a", events.append)
    await other.set("/a/b", b"not a new child")
    await other.create("/a/b/grandchild")
    await other.delete("/a/b/grandchild")
    await other.delete("/a/b")
    assert (await seen(events, 2))[1:] == [WatchEvent(NodeChange.CHILDREN, "/a")]
    await mine.watch_children("/a", events.append)
    await other.delete("/a")
    assert (await seen(events, 3))[2:] == [WatchEvent(NodeChange.DELETED, "/a")]
    with pytest.raises(NoNode):
        await mine.watch_children("/a", events.append)


@played
async def test_watch_fires_once(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    events: list[WatchEvent] = []
    for _ in range(2):
        await store.watch_data("/a", events.append)
    for number in range(3):
        await store.set("/a", b"%d" % number)
    await store.get("/a")
    assert events == [WatchEvent(NodeChange.SET, "/a")]


@played
async def test_refused_transaction_fires_no_watch(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    events: list[WatchEvent] = []
    await store.watch_data("/a", events.append)
    with pytest.raises(NoNode):
        await store.multi([Set("/a", b"x"), Delete("/no")])
    assert events == []
    await store.multi([Set("/a", b"x"), Set("/a", b"y")])
    assert await seen(events, 1) == [WatchEvent(NodeChange.SET, "/a")]


@played
async def test_watch_fires_before_the_change_can_be_read(server: Server) -> None:
    mine, other = await server.session(), await server.session()
    await mine.create("/a", b"0")
    for number in range(1, 30):
        events: list[WatchEvent] = []
        await mine.watch_data("/a", events.append)
        writing = asyncio.create_task(other.set("/a", b"%d" % number))
        while (await mine.get("/a")).data != b"%d" % number:
            await asyncio.sleep(0)
        assert len(events) == 1
        await writing


@played
async def test_failing_watch_is_reported_and_the_others_are_called(server: Server) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    def fail(event: WatchEvent) -> None:
        raise ZeroDivisionError(event.path)

    store = await server.session()
    events: list[WatchEvent] = []
    await store.watch_data("/a", fail)
    await store.watch_data("/a", events.append)
    await store.create("/a")
    await seen(events, 1)
    while not reported:
        await asyncio.sleep(0.005)
    assert isinstance(reported[0]["exception"], ZeroDivisionError)
    assert await store.exists("/a") is not None


@played
async def test_ephemeral_nodes_are_removed_with_their_session(server: Server) -> None:
    mine, other = await server.session(), await server.session()
    await mine.create("/brokers")
    await mine.create("/brokers/1", b"me", ephemeral=True)
    await other.create("/brokers/2", ephemeral=True)
    assert (await other.get("/brokers/1")).stat.ephemeral_owner == mine.session_id
    events: list[WatchEvent] = []
    expiries: list[None] = []
    mine.on_expired(lambda: expiries.append(None))
    await other.watch_children("/brokers", events.append)
    await mine.close()
    await mine.close()
    assert await seen(events, 1) == [WatchEvent(NodeChange.CHILDREN, "/brokers")]
    assert await other.children("/brokers") == ("2",)
    assert expiries == []
    for request in (mine.get("/brokers"), mine.create("/x"), mine.multi_each([[CheckVersion("/brokers")]])):
        with pytest.raises(SessionExpired):
            await request


@played
async def test_expired_session_is_notified_and_refuses_requests(server: Server) -> None:
    mine, other = await server.session(), await server.session()
    await mine.create("/controller", ephemeral=True)
    told: list[str] = []
    mine.on_expired(lambda: told.append("once"))
    events: list[WatchEvent] = []
    await mine.watch_data("/elsewhere", events.append)
    await server.expire(mine)
    assert told == ["once"]
    while await other.exists("/controller"):
        await asyncio.sleep(0.005)
    await other.create("/controller", b"other", ephemeral=True)
    await other.create("/elsewhere")
    for request in (mine.set("/controller", b"still me"), mine.get("/controller"), mine.children("/")):
        with pytest.raises(SessionExpired):
            await request
    assert (await other.get("/controller")).data == b"other"
    assert {event.change for event in events} <= {NodeChange.UNKNOWN}
    await mine.close()
    assert told == ["once"]
