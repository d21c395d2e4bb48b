"""kcat, as Debian packages it, with an embedded cluster."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from harness.kcat import Kcat, KcatFailed, kcat
from tests.clients.embedded import Running, embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDS = 300
PATIENCE_S = 60
"""The timeout of a first answer. kcat's own is five seconds, and a busy machine may stall for longer."""


class Cat:
    """kcat with the cluster's address and a topic of its own."""

    def __init__(self, program: Kcat, cluster: Running) -> None:
        self._program = program
        self.cluster = cluster
        self.topic = f"cats-{uuid4().hex}"

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        where = ("-b", self.cluster.bootstrap, "-m", str(PATIENCE_S))
        return self._program.run(*where, *arguments, given=given)

    def write(self, lines: list[bytes], *options: str) -> None:
        self.run("-P", "-t", self.topic, *options, given=b"\n".join(lines) + b"\n")

    def read(self, *options: str) -> list[bytes]:
        """Return all records, up to the end of every partition."""
        return self.run("-C", "-t", self.topic, "-e", "-q", *options).splitlines()


@pytest.fixture(scope="module")
def program() -> Kcat:
    with needs_kafka():
        return kcat()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Running]:
    with embedded(3, racks=("a", "b", "c"), properties={"num.partitions": "3"}) as running:
        yield running


@pytest.fixture
def cat(program: Kcat, cluster: Running) -> Cat:
    return Cat(program, cluster)


def numbered(count: int = RECORDS) -> list[bytes]:
    return [b"record %d, meow" % number for number in range(count)]


def test_kcat_lists_metadata(cat: Cat) -> None:
    cat.write(numbered())
    text = cat.run("-L").decode()
    assert "3 brokers:" in text
    assert f'topic "{cat.topic}" with 3 partitions' in text
    listed = json.loads(cat.run("-L", "-J", "-t", cat.topic))
    assert sorted(broker["name"] for broker in listed["brokers"]) == sorted(cat.cluster.bootstrap.split(","))
    (topic,) = listed["topics"]
    for partition in topic["partitions"]:
        leader = cat.cluster.leader_of(cat.topic, partition["partition"])
        assert partition["leader"] == leader
        assert {each["id"] for each in partition["isrs"]} == cat.cluster.in_sync(
            cat.topic, partition["partition"]
        )


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kcat_reads_what_it_wrote(cat: Cat, compression: str) -> None:
    cat.write(numbered(), "-z", compression, "-p", "1", "-X", "acks=all", "-X", "linger.ms=50")
    assert cat.read("-p", "1") == numbered()
    assert cat.read() == numbered()


def test_kcat_reads_keys_headers_timestamps_and_offsets(cat: Cat) -> None:
    cat.write([b"%d:%d" % (n % 7, n) for n in range(20)], "-K", ":", "-H", "kind=cat", "-p", "0")
    read = cat.read("-p", "0", "-o", "5", "-c", "10", "-f", r"%o %k %s %h %T\n")
    found = [re.fullmatch(rb"(\d+) (\d) (\d+) kind=cat (\d{13})", line) for line in read]
    assert [(int(m[1]), int(m[2]), int(m[3])) for m in found if m] == [(n, n % 7, n) for n in range(5, 15)]
    assert [int(line) for line in cat.read("-p", "0", "-o", "-3")] == [17, 18, 19]
    first = int(cat.read("-p", "0", "-o", "0", "-c", "1", "-f", r"%T\n")[0])
    assert len(cat.read("-p", "0", "-o", f"s@{first}", "-o", f"e@{first + 1_000_000}")) == 20
    assert cat.run("-Q", "-t", f"{cat.topic}:0:-1").split()[-1] == b"20"
    assert cat.run("-Q", "-t", f"{cat.topic}:0:-2").split()[-1] == b"0"
    assert cat.run("-Q", "-t", f"{cat.topic}:0:{first}").split()[-1] == b"0"


def test_kcat_writes_and_reads_tombstones(cat: Cat) -> None:
    cat.write([b"a:1", b"a:"], "-K", ":", "-Z", "-p", "0")
    assert cat.read("-p", "0", "-f", r"%k %S\n") == [b"a 1", b"a -1"]


def test_kcat_group_continues_from_its_commit(cat: Cat) -> None:
    cat.write(numbered())
    group = ("-G", f"group-{cat.topic}", "-X", "auto.offset.reset=earliest", "-q")
    first = cat.run(*group, "-c", "100", cat.topic).splitlines()
    rest = cat.run(*group, "-e", cat.topic).splitlines()
    assert len(first) == 100
    assert sorted(first + rest) == sorted(numbered())


def test_kcat_reports_an_unknown_topic(cat: Cat) -> None:
    with pytest.raises(KcatFailed, match=r"(?i)unknown topic or partition"):
        cat.read("-p", "0", "-X", "allow.auto.create.topics=false")
