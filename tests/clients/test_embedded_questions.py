"""The requests for the pipeline's tables, on an embedded cluster, without Spark."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from restow.client import ConnectionSettings, NewTopic, ask_cluster
from restow.cluster.net.server import ClientConnection
from restow.pipeline.sampling.batches import GAPS, SAMPLES, batches
from restow.pipeline.sampling.questions import Gap, Part, ask
from restow.pipeline.sampling.shares import nobody, shares_of
from restow.pipeline.sampling.where import Where
from restow.pipeline.schemas import SAMPLED, table
from restow.runtime.clock import SystemClock
from tests.clients.embedded import Running, embedded, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.client import KafkaAdmin
    from restow.pipeline.sampling.shares import Share

EVERYTHING = tuple(each.name for each in SAMPLED)
PARTITIONS = 7


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, racks=("a", "b", "c"), log_dirs=2) as running:
        yield running


@pytest.fixture(scope="module")
def topic(cluster: Running) -> str:
    name = f"t-{uuid4().hex}"
    new = NewTopic(name=name, partitions=PARTITIONS, replication_factor=2)
    assert ask_cluster(
        ConnectionSettings(bootstrap=cluster.bootstrap), lambda admin: admin.create_topics([new])
    ) == {name: None}
    cluster.wait_until_known(name, PARTITIONS)
    return name


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Yield a set of brokers that do not answer us, although they are alive."""
    brokers: set[int] = set()
    hear = ClientConnection.frame

    def frame(self: ClientConnection, payload: bytes) -> None:
        if self._services.broker_id not in brokers or b"restow" not in payload[:32]:
            hear(self, payload)

    monkeypatch.setattr(ClientConnection, "frame", frame)
    return brokers


def where(cluster: Running, *tables: str, connect_s: int = 60) -> Where:
    """Return settings with a timeout longer than a busy machine stalls."""
    options = {
        "bootstrap.servers": cluster.bootstrap,
        "request.timeout.ms": "60000",
        "socket.connection.setup.timeout.ms": str(1000 * connect_s),
    }
    return Where(options, tables or EVERYTHING, "test")


def shares_from(source: Where) -> list[Share]:
    async def look(admin: KafkaAdmin) -> list[Share]:
        return shares_of(await admin.describe_cluster(), await admin.describe_topics())

    return ask_cluster(source.settings(), look)


def asked(source: Where, share: Share) -> list[Part | Gap]:
    return asyncio.run(ask(source.settings(), share, source.tables, SystemClock()))


def rows(parts: list[Part | Gap], name: str) -> list[dict[str, object]]:
    """Return the rows of one table, by column names."""
    found = []
    for part in parts:
        if isinstance(part, Part) and part.table == name:
            found += [
                dict(zip(part.columns, values, strict=True))
                for values in zip(*part.columns.values(), strict=True)
            ]
    return found


def test_all_brokers_together_report_everything_once(cluster: Running, topic: str) -> None:
    source = where(cluster)
    shares = shares_from(source)
    assert [(share.broker, share.rack) for share in shares] == [(0, "a"), (1, "b"), (2, "c")]
    parts = [part for share in shares for part in asked(source, share)]
    assert not [part for part in parts if isinstance(part, Gap)]
    wanted = set(range(PARTITIONS))
    replicas = [row for row in rows(parts, "replicas") if row["topic"] == topic]
    assert len(replicas) == 2 * PARTITIONS
    assert {row["partition"] for row in replicas} == wanted
    assert len({row["topic_id"] for row in replicas}) == 1
    offsets = [row for row in rows(parts, "offsets") if row["topic"] == topic]
    assert sorted(row["partition"] for row in offsets) == sorted(wanted)
    assignment = [row for row in rows(parts, "assignment") if row["topic"] == topic]
    assert sorted(row["partition"] for row in assignment) == sorted(wanted)
    assert all(row["leader"] == row["replicas"][0] for row in assignment)
    assert len(rows(parts, "disks")) == 2 * len(shares)


def test_only_wanted_tables_are_asked_for(cluster: Running, topic: str) -> None:
    source = where(cluster, "disks")
    [part] = asked(source, shares_from(source)[0])
    assert isinstance(part, Part)
    assert part.table == "disks"


def test_rows_of_a_silent_broker_are_a_gap(cluster: Running, topic: str, deaf: set[int]) -> None:
    """Rows that other brokers also have are complete."""
    deaf.add(0)
    hasty = where(cluster, connect_s=2)
    shares = shares_from(hasty)
    parts = {each.broker: asked(where(cluster) if each.broker else hasty, each) for each in shares}
    [gap] = [part for part in parts[0] if isinstance(part, Gap)]
    assert gap.broker == 0
    assert set(gap.tables) == {"disks", "replicas", "offsets", "groups"}
    assert "does not answer" in gap.reason
    assert not [part for broker in (1, 2) for part in parts[broker] if isinstance(part, Gap)]
    together = [part for each in parts.values() for part in each]
    seen = [row["partition"] for row in rows(together, "assignment") if row["topic"] == topic]
    assert sorted(seen) == list(range(PARTITIONS))
    assert {part.table for part in parts[1] if isinstance(part, Part)} >= {"replicas", "offsets", "disks"}


def test_topic_deleted_between_planning_and_asking_is_skipped(cluster: Running) -> None:
    name = f"t-{uuid4().hex}"
    settings = ConnectionSettings(bootstrap=cluster.bootstrap)
    ask_cluster(
        settings, lambda admin: admin.create_topics([NewTopic(name=name, partitions=1, replication_factor=1)])
    )
    cluster.wait_until_known(name)
    source = where(cluster, "offsets", "assignment")
    shares = shares_from(source)
    ask_cluster(settings, lambda admin: admin.delete_topics([name]))
    known = [broker.services.metadata.topics for broker in cluster.cluster.brokers.values()]
    wait_until(lambda: not any(name in topics for topics in known), "every broker has heard of it")
    parts = [part for share in shares for part in asked(source, share)]
    gaps = [part for part in parts if isinstance(part, Gap)]
    assert any(name in gap.reason for gap in gaps if gap.tables == ("assignment",))
    assert name not in {row["topic"] for row in rows(parts, "assignment")}


def test_gap_is_a_row_among_samples_and_an_error_among_log_dirs(cluster: Running) -> None:
    share = shares_from(where(cluster))[1]
    gap = Gap(tables=("disks", "replicas"), at_ms=1_000, broker=1, reason="asleep")
    [disk, said] = (batch.to_pylist()[0] for batch in batches(share, [gap], SAMPLES))
    assert (disk["table"], disk["broker"], disk["rack"], disk["log_dir"]) == ("disks", 1, "b", None)
    assert (disk["error"], said["error"]) == ("asleep", "disks, replicas: asleep")
    assert (said["table"], said["broker"]) == (GAPS, 1)
    [alone] = batches(share, [gap], table("disks").columns)
    assert alone.to_pylist()[0]["error"] == "asleep"
    only_replicas = Gap(tables=("replicas",), at_ms=1_000, broker=1, reason="asleep")
    assert list(batches(share, [only_replicas], table("replicas").columns)) == []


def test_unreachable_cluster_is_one_gap() -> None:
    share = nobody("c", "nobody is there")
    settings = ConnectionSettings(bootstrap="127.0.0.1:1")
    [gap] = asyncio.run(ask(settings, share, EVERYTHING, SystemClock()))
    assert isinstance(gap, Gap)
    assert (gap.broker, gap.reason, set(gap.tables)) == (-1, "nobody is there", set(EVERYTHING))
    [said] = (batch.to_pylist()[0] for batch in batches(share, [gap], SAMPLES))
    assert (said["table"], said["broker"], said["cluster"]) == (GAPS, -1, "c")
