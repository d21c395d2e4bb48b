"""Fixtures: a store of either kind."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from harness.zookeeper import ZooKeeper, zookeeper
from tests.conformance.stores import TIMEOUT_S, Embedded, Remote
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conformance.stores import Server

_CONNECT_S = 120


@pytest.fixture(scope="session")
def real_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """The session's single ZooKeeper."""
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(tmp_path_factory.mktemp("zookeeper"), fsync=False))
        yield server


@pytest.fixture
def remote(real_zookeeper: ZooKeeper) -> Remote:
    """A new root in the session's ZooKeeper."""
    from kazoo.client import KazooClient

    root = f"/{uuid4().hex}"
    client = KazooClient(real_zookeeper.address, timeout=TIMEOUT_S)
    with closing(client):
        client.start(_CONNECT_S)
        client.create(root)
        client.stop()
    return Remote(f"{real_zookeeper.address}{root}")


@pytest.fixture(params=["embedded", pytest.param("zookeeper", marks=pytest.mark.jvm)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    """An empty store."""
    if request.param == "zookeeper":
        remote: Remote = request.getfixturevalue("remote")
        return remote
    return Embedded(tmp_path / "store.sqlite")
