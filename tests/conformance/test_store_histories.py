"""Random histories of transactions: the embedded store against a model, and against ZooKeeper."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from restow.cluster.store import (
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    Stat,
    StoreError,
)
from restow.cluster.store.embedded import EmbeddedStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.store import Operation, Store
    from tests.conformance.stores import Remote

PATHS = st.sampled_from(["/a", "/a/b", "/a/b/c", "/d", "/d/e", "/d/n_"])
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
DATA = st.sampled_from([b"", b"x", b"yy"])
OPERATIONS = st.one_of(
    st.builds(
        Create, PATHS, DATA, st.sampled_from([False, False, True]), st.sampled_from([False, False, True])
    ),
    st.builds(Set, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(CheckVersion, PATHS, VERSIONS),
)
TRANSACTIONS = st.tuples(st.sampled_from(["mine", "other"]), st.lists(OPERATIONS, min_size=1, max_size=4))
HISTORIES = st.lists(TRANSACTIONS, max_size=25)
RESTART = ("restart", [])


@dataclass
class ModelNode:
    data: bytes
    owner: str = ""
    version: int = 0
    created: int = 0


@dataclass
class Model:
    """The expected behaviour, by copying everything before every transaction."""

    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"/": ModelNode(b"")})

    def children(self, path: str) -> list[str]:
        return [other for other in self.nodes if other != "/" and parent(other) == path]

    def transact(self, session: str, operations: Sequence[Operation]) -> Any:
        before = {path: ModelNode(**vars(node)) for path, node in self.nodes.items()}
        results = []
        for operation in operations:
            result = self.carry_out(session, operation)
            if isinstance(result, type):
                self.nodes = before
                return result
            results.append(result)
        return results

    def carry_out(self, session: str, operation: Operation) -> Any:
        path = operation.path
        if isinstance(operation, Create):
            above = self.nodes.get(parent(path))
            if above is None:
                return NoNode
            path += f"{above.created:010d}" if operation.sequential else ""
            if path in self.nodes:
                return NodeExists
            if above.owner:
                return NoChildrenForEphemerals
            self.nodes[path] = ModelNode(operation.data, session if operation.ephemeral else "")
            above.created += 1
            return path
        node = self.nodes.get(path)
        if node is None:
            return NoNode
        if operation.version not in {-1, node.version}:
            return BadVersion
        if isinstance(operation, Set):
            node.data, node.version = operation.data, node.version + 1
            return node.version
        if isinstance(operation, Delete):
            if self.children(path):
                return NotEmpty
            del self.nodes[path]
        return None

    def restart(self) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if not node.owner}

    def shape(self) -> dict[str, Any]:
        return {
            path: (node.data, node.version, 2 * node.created - len(self.children(path)), bool(node.owner))
            for path, node in self.nodes.items()
        }


def parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"


async def outcome(store: Store, operations: Sequence[Operation]) -> Any:
    """Return results without transaction numbers, which differ between stores."""
    try:
        results = await store.multi(operations)
    except StoreError as error:
        return type(error)
    return [result.version if isinstance(result, Stat) else result for result in results]


async def shape(store: Store, path: str = "/") -> dict[str, Any]:
    """Return every node's data, counters and whether it is ephemeral."""
    data, stat = await store.get(path)
    found = {path: (data, stat.version, stat.cversion, stat.ephemeral_owner != 0)}
    for name in await store.children(path):
        found |= await shape(store, f"{path.rstrip('/')}/{name}")
    return found


@given(st.lists(st.one_of(TRANSACTIONS, TRANSACTIONS, TRANSACTIONS, st.just(RESTART)), max_size=40))
@settings(deadline=None)
def test_embedded_store_behaves_like_the_model(history: list[tuple[str, list[Operation]]]) -> None:
    async def play(file: Path) -> None:
        server, model = EmbeddedStore(file, fsync=False), Model()
        stores = {"mine": server.session(), "other": server.session()}
        for session, operations in history:
            if session == "restart":
                await server.close()
                model.restart()
                server = EmbeddedStore(file, fsync=False)
                stores = {"mine": server.session(), "other": server.session()}
            else:
                expected = model.transact(session, operations)
                assert await outcome(stores[session], operations) == expected
            assert await shape(stores["mine"]) == model.shape()
        await server.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "store.sqlite"))


@pytest.mark.jvm
@given(st.lists(HISTORIES, min_size=1, max_size=1))
@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_stores_return_the_same_results(
    remote: Remote, history: list[list[tuple[str, list[Operation]]]]
) -> None:
    """Concurrently, so that ZooKeeper's requests are joined and, when refused, split again."""

    async def play(mine: Store, other: Store) -> tuple[list[Any], dict[str, Any]]:
        stores = {"mine": mine, "other": other}
        outcomes: list[Any] = []
        for session, operations in history[0]:
            outcomes.append(await outcome(stores[session], operations))
        ours = [operations for session, operations in history[0] if session == "mine"]
        for answer in await mine.multi_each(ours):
            if isinstance(answer, StoreError):
                outcomes.append((type(answer), answer.operation))
            else:
                outcomes.append([each.version if isinstance(each, Stat) else each for each in answer])
        return outcomes, await shape(mine)

    async def compare() -> None:
        server = EmbeddedStore()
        embedded = await play(server.session(), server.session())
        await server.close()
        fresh = await remote.fresh()
        try:
            assert await play(await fresh.session(), await fresh.session()) == embedded
        finally:
            await fresh.stop()

    asyncio.run(compare())
