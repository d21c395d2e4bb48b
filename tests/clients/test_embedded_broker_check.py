"""Permissions of the embedded cluster, and `restow broker-check` on it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from restow.cli.app import run
from restow.client import ConnectionSettings, NewTopic, connected
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeClusterRequest
from tests.clients.embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.embedded import Running

ON_CLUSTERS = {
    "ALTER",
    "ALTER_CONFIGS",
    "CLUSTER_ACTION",
    "CREATE",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "IDEMPOTENT_WRITE",
}
ON_TOPICS = {"ALTER", "ALTER_CONFIGS", "CREATE", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3) as running:
        yield running


def test_everything_is_allowed_to_all_users(cluster: Running) -> None:
    async def main() -> None:
        async with connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin:
            outcome = await admin.create_topics([NewTopic(name="allowed", by_hand={0: (0, 1)})])
            assert outcome == {"allowed": None}
            await asyncio.to_thread(cluster.wait_until_known, "allowed")
            told = await admin.permissions(["allowed", "none"])
            assert told.cluster == ON_CLUSTERS
            assert told.topics["allowed"] == ON_TOPICS
            assert await admin.describe_metadata_quorum() is None
            link = admin._link
            asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
            assert (await link.ask(asked)).authorized_operations == {5, 7, 8, 9, 10, 11, 12}
            assert (await link.ask(DescribeClusterRequest())).authorized_operations is None
            assert (await link.ask(asked)).error_code == ErrorCode.NONE

    asyncio.run(main())


def test_broker_check_passes_without_replicas_and_fails_with_some(
    cluster: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    async def main() -> int:
        async with connected(ConnectionSettings(bootstrap=cluster.bootstrap)) as admin:
            await admin.create_topics([NewTopic(name="checked", by_hand={0: (0, 1), 1: (1, 0)})])
            await asyncio.to_thread(cluster.wait_until_known, "checked", 2)
            controller = await admin.controller()
            assert controller is not None
            return controller

    controller = asyncio.run(main())
    for broker in range(3):
        code = run(["broker-check", str(broker), "-b", cluster.bootstrap, "--json"])
        said = json.loads(capsys.readouterr().out)
        failing = {each["name"] for each in said["checks"] if each["outcome"] != "holds"}
        expected = {"no replicas", "no leaders"} if broker < 2 else set()
        expected |= {"not the controller"} if broker == controller else set()
        assert failing == expected
        assert said["holds"] is (not expected)
        assert code == (1 if expected else 0)
    assert run(["broker-check", "0", "-b", cluster.bootstrap]) == 1
    text = capsys.readouterr().out
    assert "broker 0 may be stopped for good: no" in text
    assert "restow plan drain 0" in text


@pytest.mark.parametrize("broker", ["-1", "x", ""])
def test_broker_check_refuses_an_unknown_broker(broker: str) -> None:
    assert run(["broker-check", "-b", "127.0.0.1:1", "--", broker]) == 2
