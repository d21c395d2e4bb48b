"""`restow reassign` beside Apache's tool: the same calls give the same state, exit code and lines."""

from __future__ import annotations

import asyncio
import io
import json
import re
import time
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4, KAFKA_VERSION
from harness.jvm import kafka_jvm
from restow.cli import run
from restow.client import (
    ConfigResource,
    ConnectionSettings,
    KafkaAdmin,
    NewTopic,
    TopicPartitionReplica,
    connected,
)
from restow.execute.throttle.throttles import RATES, REPLICAS
from restow.model import TopicPartition
from tests.apache.hearing import PATIENCE_S, agreed, prepare_marker, views
from tests.apache.original_tool import OriginalTool, Outcome
from tests.apache.reassign_cases import START, Case, arguments, cases, moves
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

pytestmark = [pytest.mark.apache, pytest.mark.jvm]

_RECORDS, _RECORD_BYTES = 200, 100_000
"""Kafka sends a megabyte at once and then pauses for its window: these take minutes."""
_NAMES = sorted(START)
_SOME = ("move", "cancel")
"""The cases that run on a real cluster every time."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A cluster: its address, its brokers, and their log dirs if they have two."""

    bootstrap: str
    ids: tuple[int, int, int]
    dirs: dict[int, tuple[str, str]] | None = None
    lay: dict[TopicPartitionReplica, str] = field(default_factory=dict)
    """The log dirs of replicas at the start, if there is a choice."""
    looks: int = 1
    """How many looks in a row must agree. Brokers of a quorum surely agree at the first."""

    def do(self, work: Callable[[KafkaAdmin], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with connected(ConnectionSettings(bootstrap=self.bootstrap)) as admin:
                return await work(admin)

        return asyncio.run(main())

    @property
    def start(self) -> dict[TopicPartition, tuple[int, ...]]:
        return {
            TopicPartition(topic, number): tuple(self.ids[each] for each in replicas)
            for topic, rows in START.items()
            for number, replicas in enumerate(rows)
        }


def _prepared(bootstrap: str, ids: tuple[int, int, int], *, two_dirs: bool = False) -> Ground:
    from kafka import KafkaProducer

    ground = Ground(bootstrap, ids)

    async def create(admin: KafkaAdmin) -> None:
        made = await admin.create_topics(
            NewTopic(
                name=topic,
                by_hand={number: tuple(ids[each] for each in row) for number, row in enumerate(rows)},
            )
            for topic, rows in START.items()
        )
        assert not any(made.values()), made
        await prepare_marker(admin, ids[0])

    ground.do(create)
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for _ in range(_RECORDS):
            producer.send("big", b"x" * _RECORD_BYTES, partition=0)
        producer.flush()
    if two_dirs:
        disks = ground.do(lambda admin: admin.describe_log_dirs(ids))
        dirs = {broker: _paths(disks[broker]) for broker in ids}
        lies = {each.partition: each.log_dir for each in disks[ids[0]].replicas}
        first = lies[TopicPartition("foo", 0)]
        if dirs[ids[0]][0] != first:
            dirs[ids[0]] = (first, dirs[ids[0]][0])
        lay = ground.do(lambda admin: _lay(admin, ids))
        ground = Ground(bootstrap, ids, dirs, lay, looks=3)
    return ground


def _paths(disks: Any) -> tuple[str, str]:
    first, second = (each.path for each in disks.log_dirs)
    return first, second


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Start an embedded cluster with two log dirs per broker."""
    with embedded(3, log_dirs=2, data=tmp_path_factory.mktemp("cluster")) as running:
        yield _prepared(running.bootstrap, (0, 1, 2), two_dirs=True)


@pytest.fixture(scope="module")
def real(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Start Apache Kafka 3.9.1 in KRaft mode."""
    yield from _real(tmp_path_factory.mktemp("kafka"), KAFKA_VERSION)


@pytest.fixture(scope="module")
def real_4(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Start Apache Kafka 4.3.1."""
    yield from _real(tmp_path_factory.mktemp("kafka-4"), KAFKA_4)


def _real(folder: Path, version: str) -> Iterator[Ground]:
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(apache_kafka(folder, nodes=3, version=version, heap="256m"))
        yield _prepared(cluster.bootstrap, (1, 2, 3))


@pytest.fixture(scope="module")
def original(gateway: JavaGateway) -> OriginalTool:
    return OriginalTool(gateway)


@pytest.fixture(scope="module")
def original_4() -> Iterator[OriginalTool]:
    with ExitStack() as stack:
        with needs_kafka():
            gateway = stack.enter_context(kafka_jvm(KAFKA_4))
        yield OriginalTool(gateway)


def _restow(*given: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["reassign", *given])
    return Outcome(code, out.getvalue(), err.getvalue())


async def _reset(admin: KafkaAdmin, ground: Ground) -> None:
    """Restore the start: no moves, no throttles, every replica in its place and log dir."""
    running = await admin.list_partition_reassignments()
    if running:
        await admin.alter_partition_reassignments(dict.fromkeys(running))
    await _clear(admin, ground)
    await admin.alter_partition_reassignments(ground.start)
    deadline = time.monotonic() + PATIENCE_S
    while not await _is_reset(admin, ground):
        assert time.monotonic() < deadline, "the cluster does not come back to where it was"
        await asyncio.sleep(0.1)


async def _is_reset(admin: KafkaAdmin, ground: Ground) -> bool:
    found = await agreed(admin, ground.ids, _NAMES)
    if found is None or found[0] or found[1] != ground.start:
        return False
    for view in await views(admin, ground.ids, _NAMES):
        if any(each.isr != set(ground.start[name]) for name, each in view.items()):
            return False
    there = await _lay(admin, ground.ids)
    astray = {replica: path for replica, path in ground.lay.items() if there.get(replica) != path}
    if astray:
        await admin.alter_replica_log_dirs(astray)
    return not astray


async def _lay(admin: KafkaAdmin, ids: tuple[int, int, int]) -> dict[TopicPartitionReplica, str]:
    return {
        TopicPartitionReplica(each.partition, broker): each.log_dir
        for broker, disks in (await admin.describe_log_dirs(ids)).items()
        for each in disks.replicas  # type: ignore[union-attr]
        if each.partition.topic in START and not each.future
    }


async def _clear(admin: KafkaAdmin, ground: Ground) -> None:
    await admin.incremental_alter_configs(
        {ConfigResource("topic", name): dict.fromkeys(REPLICAS) for name in _NAMES}
        | {ConfigResource("broker", str(each)): dict.fromkeys(RATES) for each in ground.ids}
    )


async def _effect(admin: KafkaAdmin, ground: Ground) -> dict[str, object]:
    """Return the effect of a call: targets of partitions, and every throttle."""
    heading = await _settled(admin, ground)
    configs = await admin.describe_configs(
        [
            *(ConfigResource("topic", name) for name in _NAMES),
            *(ConfigResource("broker", str(each)) for each in ground.ids),
        ]
    )
    throttles = {
        (of.name, name): found[name].value
        for of, found in configs.items()
        for name in (*RATES, *REPLICAS)
        if name in found and found[name].source in ("topic", "broker")  # type: ignore[operator, index]
    }
    return {"heading": heading, "throttles": throttles}


async def _settled(admin: KafkaAdmin, ground: Ground) -> dict[str, list[int]]:
    """Return the present or target replicas, once all brokers agree with the controller."""
    deadline = time.monotonic() + PATIENCE_S
    last, looks = None, 0
    while last is None or looks < ground.looks:
        assert time.monotonic() < deadline, "brokers do not agree where partitions are"
        before, last = last, await _heading(admin, ground)
        looks = looks + 1 if last is not None and last == before else 1
    return last


async def _heading(admin: KafkaAdmin, ground: Ground) -> dict[str, list[int]] | None:
    found = await agreed(admin, ground.ids, _NAMES)
    if found is None:
        return None
    moving, now = found
    heading = {str(name): list(replicas) for name, replicas in now.items()}
    for name, move in moving.items():
        heading[str(name)] = [broker for broker in move.replicas if broker not in move.removing]
    return {**heading, "big moves": [each.partition for each in moving if each.topic == "big"]}


_NO_LINE = re.compile(r"\s+at |\s+\.\.\. |Caused by: |[\w.$]+(Exception|Error)\b| at \[Source")
_CLASS = re.compile(r"^(Error: )?([\w$]+\.)+[\w$]+(Exception|Error): ")


def _lines(outcome: Outcome, case: Case, *, dirs_told: bool) -> list[str]:
    """Return the lines that scripts parse: no stack traces, class names, or random parts."""
    out = outcome.out.replace("are active.Clearing", "are active.\nClearing")
    kept = (line for line in out.splitlines() if line.strip() and not _NO_LINE.match(line))
    lines = [_plain(_CLASS.sub(r"\1", line), case, dirs_told) for line in kept]
    complaint = _CLASS.sub(r"\1", outcome.err).split("\n", 1)[0]
    if case.loose:
        lines = [line if not line.startswith("Error:") else "Error:" for line in lines]
    return lines + ([complaint] if complaint else [])


def _plain(line: str, case: Case, dirs_told: bool) -> str:
    if not line.startswith('{"version"'):
        return re.sub(r"Unable to read file (\S+?):? .*", r"Unable to read file \1", line + " ").rstrip()
    document = json.loads(line)
    for each in document["partitions"]:
        if not dirs_told:
            del each["log_dirs"]
        if case.name.startswith("generate"):
            each["replicas"].sort()
            each.pop("log_dirs", None)
    return json.dumps(document)


def _both(case: Case, ground: Ground, original: OriginalTool, folder: Path, *, dirs_told: bool) -> None:
    seen = []
    for tool in (original.run, _restow):
        ground.do(lambda admin: _reset(admin, ground))
        outcomes = []
        for call in case.calls:
            outcomes.append(tool("--bootstrap-server", ground.bootstrap, *arguments(call, folder)))
            ground.do(lambda admin: _settled(admin, ground))
        effect = ground.do(lambda admin: _effect(admin, ground))
        seen.append(
            {
                "codes": [each.code for each in outcomes],
                "lines": [_lines(each, case, dirs_told=dirs_told) for each in outcomes],
                "effect": effect,
            }
        )
    theirs, mine = seen
    assert mine == theirs


def _named(dirs: bool) -> list[str]:
    """Return the cases' names, which do not depend on a cluster."""
    places = dict.fromkeys(range(3), ("/x", "/y")) if dirs else None
    return [case.name for case in cases((0, 1, 2), places)]


def _case(ground: Ground, name: str) -> Case:
    (found,) = (case for case in cases(ground.ids, ground.dirs) if case.name == name)
    return found


def _as_version_4_says(case: Case) -> Case:
    """Return the case in the words of version 4; ours are version 3's."""
    others = ("generate for too few brokers", "generate for a broker that is not there")
    return replace(case, loose=True) if case.name in others else case


@pytest.mark.parametrize("name", _named(dirs=True))
def test_tool_equals_the_original_on_the_embedded_cluster(
    name: str, ours: Ground, original: OriginalTool, tmp_path: Path
) -> None:
    _both(_case(ours, name), ours, original, tmp_path, dirs_told=False)


@pytest.mark.full
@pytest.mark.parametrize("name", _named(dirs=True))
def test_tool_equals_the_latest_original_on_the_embedded_cluster(
    name: str, ours: Ground, original_4: OriginalTool, tmp_path: Path
) -> None:
    _both(_as_version_4_says(_case(ours, name)), ours, original_4, tmp_path, dirs_told=True)


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in _SOME else pytest.mark.full) for each in _named(dirs=False)],
)
def test_tool_equals_the_original_on_apache_kafka(
    name: str, real: Ground, original: OriginalTool, tmp_path: Path
) -> None:
    _both(_case(real, name), real, original, tmp_path, dirs_told=False)


@pytest.mark.full
@pytest.mark.parametrize("name", _named(dirs=False))
def test_tool_equals_the_original_on_the_latest_kafka(
    name: str, real_4: Ground, original_4: OriginalTool, tmp_path: Path
) -> None:
    _both(_as_version_4_says(_case(real_4, name)), real_4, original_4, tmp_path, dirs_told=True)


@pytest.mark.parametrize("words", [("--version",), ("--list", "--version"), ("--bogus", "--version")])
def test_version_is_printed_like_the_original(words: tuple[str, ...], original: OriginalTool) -> None:
    """Only a version on stdout, with exit code 0, before the flags' values are checked."""
    theirs, mine = original.run(*words), _restow(*words)
    shape = re.compile(r"(\d+\.\d+\S*\n)?")
    assert shape.fullmatch(theirs.out)
    assert shape.fullmatch(mine.out)
    assert (mine.code, bool(mine.out)) == (theirs.code, bool(theirs.out))
    assert mine.err.split("\n", 1)[0] == _CLASS.sub("", theirs.err.split("\n", 1)[0])


def test_tool_cancels_moves_that_the_original_overlooks(
    ours: Ground, original: OriginalTool, tmp_path: Path
) -> None:
    """The original does not cancel moves that only add replicas; ours does."""
    a, b, c = ours.ids
    wide = tmp_path / "wide.json"
    wide.write_text(json.dumps(moves(("big", 0, [a, b, c]))))
    where = ("--bootstrap-server", ours.bootstrap)
    file = ("--reassignment-json-file", str(wide))
    ours.do(lambda admin: _reset(admin, ours))
    assert _restow(*where, "--execute", *file, "--throttle", "1000").code == 0
    ours.do(lambda admin: _settled(admin, ours))
    theirs = original.run(*where, "--cancel", *file, "--preserve-throttles")
    assert "None of the specified partition reassignments are active." in theirs.out
    mine = _restow(*where, "--cancel", *file)
    assert "Successfully cancelled partition reassignment for: big-0" in mine.out
    assert ours.do(lambda admin: admin.list_partition_reassignments()) == {}
