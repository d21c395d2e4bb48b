"""The store's contract, tested on the embedded store and on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.store import (
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    InvalidPath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    StoreError,
    ensure_paths,
)
from tests.conformance.stores import played

if TYPE_CHECKING:
    from tests.conformance.stores import Server


@played
async def test_node_is_created_read_set_and_deleted(server: Server) -> None:
    store = await server.session()
    assert await store.create("/a", b"one") == "/a"
    node = await store.get("/a")
    assert node.data == b"one"
    assert (node.stat.version, node.stat.cversion, node.stat.ephemeral_owner) == (0, 0, 0)
    assert node.stat.mzxid == node.stat.czxid
    stat = await store.set("/a", b"\x00two\xff", 0)
    assert (stat.version, stat.czxid) == (1, node.stat.czxid)
    assert stat.mzxid > stat.czxid
    assert await store.get("/a") == (b"\x00two\xff", stat)
    assert await store.exists("/a") == stat
    await store.delete("/a", 1)
    assert await store.exists("/a") is None


@played
async def test_parent_counts_changes_of_its_children(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    await store.create("/a/x")
    await store.create("/a/y")
    await store.delete("/a/x")
    await store.set("/a/y", b"data")
    assert (await store.get("/a")).stat.cversion == 3
    assert (await store.get("/a")).stat.version == 0


@played
async def test_children_returns_sorted_names(server: Server) -> None:
    store = await server.session()
    await ensure_paths(store, ["/a/10/deep", "/a/9", "/a/x y", "/a/ü"])
    assert await store.children("/a") == ("10", "9", "x y", "ü")
    assert await store.children("/a/9") == ()


@played
async def test_missing_node_raises_no_node(server: Server) -> None:
    store = await server.session()
    assert await store.exists("/no") is None
    requests: list[Any] = [
        store.get("/no"),
        store.set("/no", b""),
        store.delete("/no"),
        store.children("/no"),
        store.create("/no/child"),
    ]
    for request in requests:
        with pytest.raises(NoNode) as caught:
            await request
        assert caught.value.path == "/no"


@played
async def test_invalid_changes_are_refused(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    await store.set("/a", b"x")
    await store.create("/a/child")
    await store.create("/mine", ephemeral=True)
    with pytest.raises(NodeExists):
        await store.create("/a")
    with pytest.raises(NodeExists):
        await store.create("/")
    for version in (0, 2):
        with pytest.raises(BadVersion):
            await store.set("/a", b"y", version)
        with pytest.raises(BadVersion):
            await store.delete("/a", version)
    with pytest.raises(NotEmpty):
        await store.delete("/a", 1)
    with pytest.raises(NoChildrenForEphemerals):
        await store.create("/mine/child")
    assert (await store.get("/a")).data == b"x"


@pytest.mark.parametrize("path", ["", "a", "a/b", "/a/", "//", "/a//b", "/.", "/a/../b", "/\0", "/a\ue000"])
@played
async def test_invalid_path_is_refused(server: Server, path: str) -> None:
    store = await server.session()
    await store.create("/a")
    requests: list[Any] = [
        store.create(path),
        store.get(path),
        store.set(path, b""),
        store.delete(path),
        store.exists(path),
        store.children(path),
        store.multi([CheckVersion("/a"), Delete(path)]),
        store.watch_data(path, print),
        store.watch_children(path, print),
    ]
    for request in requests:
        with pytest.raises(InvalidPath):
            await request


@played
async def test_root_cannot_be_deleted(server: Server) -> None:
    store = await server.session()
    assert await store.exists("/") is not None
    with pytest.raises(InvalidPath):
        await store.delete("/")


@played
async def test_sequential_number_counts_all_nodes_ever_created(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    assert await store.create("/a/n_", sequential=True) == "/a/n_0000000000"
    assert await store.create("/a/n_", b"x", sequential=True) == "/a/n_0000000001"
    await store.create("/a/other")
    await store.delete("/a/n_0000000001")
    assert await store.create("/a/m_", sequential=True, ephemeral=True) == "/a/m_0000000003"
    assert await store.children("/a") == ("m_0000000003", "n_0000000000", "other")
    for nameless in ("/", "/a/"):
        with pytest.raises(InvalidPath):
            await store.create(nameless, sequential=True)


@played
async def test_transaction_carries_out_all_operations(server: Server) -> None:
    store = await server.session()
    await store.create("/epoch", b"1")
    made, made_child, stat, *rest = await store.multi(
        [
            Create("/a"),
            Create("/a/n_", b"x", sequential=True),
            Set("/epoch", b"2", 0),
            CheckVersion("/epoch", 1),
            Create("/gone"),
            Delete("/gone"),
        ]
    )
    assert (made, made_child) == ("/a", "/a/n_0000000000")
    assert stat == await store.exists("/epoch")
    assert rest == [None, "/gone", None]
    assert await store.exists("/gone") is None
    assert await store.multi([]) == ()


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (CheckVersion("/epoch", 7), BadVersion),
        (CheckVersion("/no"), NoNode),
        (Create("/epoch"), NodeExists),
        (Create("/no/child"), NoNode),
        (Set("/epoch", b"", 7), BadVersion),
        (Delete("/full"), NotEmpty),
    ],
)
@played
async def test_refused_transaction_changes_nothing(
    server: Server, refused: Any, error: type[StoreError]
) -> None:
    store = await server.session()
    await ensure_paths(store, ["/epoch", "/full/child", "/doomed"])
    before = await store.get_each(["/", "/epoch", "/full", "/doomed"])
    with pytest.raises(error) as caught:
        await store.multi([Create("/a"), Create("/a/b"), Set("/epoch", b"2"), Delete("/doomed"), refused])
    assert caught.value.operation == 4
    assert await store.get_each(["/", "/epoch", "/full", "/doomed"]) == before
    assert await store.children("/") == ("doomed", "epoch", "full")


@played
async def test_multi_each_transactions_are_independent(server: Server) -> None:
    store = await server.session()
    await store.create("/epoch")
    answers = await store.multi_each(
        [
            [CheckVersion("/epoch", 0), Create("/a")],
            [CheckVersion("/epoch", 1), Create("/b")],
            [Create("/a/child", b"x"), Create("/a")],
            [],
            [CheckVersion("/epoch", 0), Create("/a/child", b"y")],
        ]
    )
    assert answers[0] == (None, "/a")
    assert isinstance(answers[1], BadVersion)
    assert answers[1].operation == 0
    assert isinstance(answers[2], NodeExists)
    assert answers[2].operation == 1
    assert answers[3:] == ((), (None, "/a/child"))
    assert (await store.get("/a/child")).data == b"y"
    assert await store.exists("/b") is None


@played
async def test_get_each_returns_many_nodes(server: Server) -> None:
    store = await server.session()
    await store.create("/a")
    paths = [f"/a/{number}" for number in range(700)]
    answers = await store.multi_each([(Create(path, path.encode()),) for path in paths])
    assert [*answers] == [(path,) for path in paths]
    nodes = await store.get_each([*paths, "/a/700"])
    assert [node and node.data for node in nodes] == [*(path.encode() for path in paths), None]


@played
async def test_requests_are_carried_out_in_order(server: Server) -> None:
    store = await server.session()
    requests: list[Any] = [
        store.exists("/a"),
        store.create("/a", b"1"),
        store.get("/a"),
        store.create("/a"),
        store.set("/a", b"2"),
        store.set("/a", b"3", 1),
        store.get("/a"),
        store.delete("/a"),
        store.exists("/a"),
    ]
    answers = await asyncio.gather(*requests, return_exceptions=True)
    assert answers[0] is None
    assert answers[1] == "/a"
    assert answers[2].data == b"1"
    assert isinstance(answers[3], NodeExists)
    assert answers[5].version == 2
    assert answers[6].data == b"3"
    assert answers[7:] == [None, None]


@played
async def test_one_of_two_candidates_becomes_controller(server: Server) -> None:
    stores = [await server.session() for _ in range(3)]
    answers = await asyncio.gather(
        *(store.create("/controller", ephemeral=True) for store in stores), return_exceptions=True
    )
    assert "/controller" in answers
    assert sum(isinstance(answer, NodeExists) for answer in answers) == 2
    winner = stores[answers.index("/controller")]
    assert (await stores[0].get("/controller")).stat.ephemeral_owner == winner.session_id


@played
async def test_conditional_changes_are_not_lost(server: Server) -> None:
    async def count_up(number: int) -> None:
        store = await server.session()
        for _ in range(number):
            while True:
                node = await store.get("/counter")
                try:
                    await store.set("/counter", str(int(node.data) + 1).encode(), node.stat.version)
                except BadVersion:
                    continue
                break

    store = await server.session()
    await store.create("/counter", b"0")
    await asyncio.gather(*(count_up(15) for _ in range(3)))
    assert (await store.get("/counter")).data == b"45"


@played
async def test_ensure_paths_creates_missing_paths_once(server: Server) -> None:
    store = await server.session()
    await store.create("/a", b"kept")
    for _ in range(2):
        await ensure_paths(store, ["/a/b/c", "/d", "/a/e"])
    assert (await store.get("/a")).data == b"kept"
    assert await store.children("/a") == ("b", "e")
    await store.create("/f", ephemeral=True)
    with pytest.raises(NoChildrenForEphemerals):
        await ensure_paths(store, ["/f/g"])
