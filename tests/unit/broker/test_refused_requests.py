"""docs/unsupported.md against a running broker, key by key and version by version."""

from __future__ import annotations

import asyncio
import re
import struct
from pathlib import Path

import pytest

from restow.cluster.embedded import EmbeddedCluster
from restow.wire.codec import API_VERSIONS
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ApiVersionsRequest, DeleteTopicsRequest
from tests.unit.broker.conversations import Client, run
from tests.unit.broker.harm import port_of, unharmed

PAGE = Path(__file__).parents[3] / "docs" / "unsupported.md"
ROW = re.compile(r"^\| (\d+) \| \w+ \| (?:(\d+)(?:–(\d+))?|–) \|", re.MULTILINE)
LAST_KEY = 100


def told() -> dict[int, range]:
    """Return the page's versions of each key; an empty range for unsupported keys."""
    found = ROW.findall(PAGE.read_text())
    return {
        int(key): range(int(first), int(last or first) + 1) if first else range(0)
        for key, first, last in found
    }


async def is_hung_up_on(port: int, key: int, version: int) -> bool:
    """Return whether a request of only a header closes the connection without a response."""
    client = await Client.connect(port)
    client.connection.send(struct.pack(">hhih", key, version, 1, -1))
    await client.is_closed.wait()
    return client.frames.empty()


def test_api_versions_equal_the_page(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await Client.connect(port_of(cluster))
            asked = ApiVersionsRequest(client_software_name="t", client_software_version="1")
            client.ask(API_VERSIONS, 3, 1, asked)
            offered = (await client.answer(API_VERSIONS, 3)).api_keys
            assert {each.api_key: range(each.min_version, each.max_version + 1) for each in offered} == {
                key: versions for key, versions in told().items() if versions
            }

    run(scenario())


def test_other_keys_and_versions_close_the_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """All existing keys, some others, and the versions next to the supported ones."""
    served = {key: versions for key, versions in told().items() if versions and key != API_VERSIONS}
    refused = [
        (key, version)
        for key in range(-2, LAST_KEY)
        if key not in told() or not told()[key]
        for version in (0, 1)
    ]
    refused += [
        (key, version) for key, versions in served.items() for version in (versions[0] - 1, versions[-1] + 1)
    ]

    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster, unharmed(cluster, caplog):
            port = port_of(cluster)
            silent = await asyncio.gather(*(is_hung_up_on(port, *each) for each in refused))
            assert [each for each, is_silent in zip(refused, silent, strict=True) if not is_silent] == []

    run(scenario())
    assert len(refused) > 100


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "t/partitions", "n\x7f", "\ud7ff", "x" * 300])
def test_delete_topics_refuses_unknown_names(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(data=tmp_path, fsync=False) as cluster:
            client = await Client.connect(port_of(cluster))
            client.ask(20, 5, 1, DeleteTopicsRequest(topic_names=[name], timeout_ms=1000))
            (result,) = (await client.answer(20, 5)).responses
            assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(scenario())
