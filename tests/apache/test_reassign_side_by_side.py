"""`restow reassign` beside Apache's tool: the same calls from the same start end in the same state, with the
same exit code and the same lines."""

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
from harness.jars import KAFKA_4
from harness.jvm import kafka_jvm
from restow.cli import run
from restow.client import ConfigOf, KafkaAdmin, NewTopic, ReplicaOf, Settings, connected
from restow.execute.throttles import RATES, REPLICAS
from restow.model import TopicPartition
from restow.wire.messages import MetadataRequest
from tests.apache.original_tool import OriginalTool, Outcome
from tests.apache.reassign_cases import START, Case, arguments, cases, moves
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from py4j.java_gateway import JavaGateway

pytestmark = [pytest.mark.apache, pytest.mark.jvm]

_PATIENCE_S = 90.0
_RECORDS, _RECORD_BYTES = 60, 100_000
_ASKED = 6
"""How many looks in a row must show the same."""
_NAMES = sorted(START)


@dataclass(frozen=True, slots=True)
class Ground:
    """A cluster to work on: where it is, its brokers, and their directories if they have two."""

    bootstrap: str
    ids: tuple[int, int, int]
    dirs: dict[int, tuple[str, str]] | None = None
    lay: dict[ReplicaOf, str] = field(default_factory=dict)
    """Where replicas lie at the start, if there is a choice."""

    def do(self, work: Callable[[KafkaAdmin], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with connected(Settings(bootstrap=self.bootstrap)) as admin:
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
        made = await admin.create(
            NewTopic(
                name=topic,
                by_hand={number: tuple(ids[each] for each in row) for number, row in enumerate(rows)},
            )
            for topic, rows in START.items()
        )
        assert not any(made.values()), made

    ground.do(create)
    with closing(KafkaProducer(bootstrap_servers=bootstrap, acks="all")) as producer:
        for _ in range(_RECORDS):
            producer.send("big", b"x" * _RECORD_BYTES, partition=0)
        producer.flush()
    if two_dirs:
        disks = ground.do(lambda admin: admin.disks(ids))
        dirs = {broker: _paths(disks[broker]) for broker in ids}
        lies = {each.partition: each.log_dir for each in disks[ids[0]].replicas}
        first = lies[TopicPartition("foo", 0)]
        if dirs[ids[0]][0] != first:
            dirs[ids[0]] = (first, dirs[ids[0]][0])
        ground = Ground(bootstrap, ids, dirs, ground.do(lambda admin: _lay(admin, ids)))
    return ground


def _paths(disks: Any) -> tuple[str, str]:
    first, second = (each.path for each in disks.log_dirs)
    return first, second


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """An embedded cluster with two directories per broker."""
    with embedded(3, log_dirs=2, data=tmp_path_factory.mktemp("cluster"), fsync=False) as running:
        yield _prepared(running.bootstrap, (0, 1, 2), two_dirs=True)


@pytest.fixture(scope="module")
def real(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    """Apache Kafka 3.9.1 in KRaft mode."""
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(
                apache_kafka(tmp_path_factory.mktemp("kafka"), nodes=3, heap="256m")
            )
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
    """Everything as it was: no moves, no throttles, every replica in its place and directory."""
    running = await admin.moves()
    if running:
        await admin.reassign(dict.fromkeys(running))
    await _clear(admin, ground)
    await admin.reassign(ground.start)
    deadline = time.monotonic() + _PATIENCE_S
    while not await _is_reset(admin, ground):
        assert time.monotonic() < deadline, "the cluster does not come back to where it was"
        await asyncio.sleep(0.1)


async def _is_reset(admin: KafkaAdmin, ground: Ground) -> bool:
    if await admin.moves():
        return False
    for topic in await admin.topics(_NAMES):
        for each in topic.partitions:
            wanted = ground.start[TopicPartition(topic.name, each.number)]
            if each.replicas != wanted or set(each.isr) != set(wanted):
                return False
    there = await _lay(admin, ground.ids)
    astray = {replica: path for replica, path in ground.lay.items() if there.get(replica) != path}
    if astray:
        await admin.move_between_dirs(astray)
    return not astray


async def _lay(admin: KafkaAdmin, ids: tuple[int, int, int]) -> dict[ReplicaOf, str]:
    return {
        ReplicaOf(each.partition, broker): each.log_dir
        for broker, disks in (await admin.disks(ids)).items()
        for each in disks.replicas  # type: ignore[union-attr]
        if each.partition.topic in START and not each.future
    }


async def _clear(admin: KafkaAdmin, ground: Ground) -> None:
    await admin.set_configs(
        {ConfigOf("topic", name): dict.fromkeys(REPLICAS) for name in _NAMES}
        | {ConfigOf("broker", str(each)): dict.fromkeys(RATES) for each in ground.ids}
    )


async def _effect(admin: KafkaAdmin, ground: Ground) -> dict[str, object]:
    """What a call left behind: where partitions go, and every throttle."""
    deadline = time.monotonic() + _PATIENCE_S
    agreed, heading = 0, await _heading(admin, ground.ids)
    while agreed < _ASKED:
        await asyncio.sleep(0.05)
        before, heading = heading, await _heading(admin, ground.ids)
        agreed = agreed + 1 if heading is not None and heading == before else 0
        assert time.monotonic() < deadline, "brokers do not agree where partitions are"
    configs = await admin.configs(
        [
            *(ConfigOf("topic", name) for name in _NAMES),
            *(ConfigOf("broker", str(each)) for each in ground.ids),
        ]
    )
    throttles = {
        (of.name, name): found[name].value
        for of, found in configs.items()
        for name in (*RATES, *REPLICAS)
        if name in found and found[name].source in ("topic", "broker")  # type: ignore[operator, index]
    }
    return {"heading": heading, "throttles": throttles}


async def _heading(admin: KafkaAdmin, ids: tuple[int, ...]) -> dict[str, list[int]] | None:
    """The replicas that partitions have or are to have; nothing while brokers do not agree."""
    moving = await admin.moves()
    now = await _as_all_see_it(admin, ids)
    if now is None:
        return None
    found = {str(name): list(replicas) for name, replicas in now.items()}
    for name, move in moving.items():
        found[str(name)] = [broker for broker in move.replicas if broker not in move.removing]
    return {**found, "big moves": [each.partition for each in moving if each.topic == "big"]}


async def _settled(admin: KafkaAdmin, ids: tuple[int, ...]) -> None:
    """Until all brokers say of what moves what the controller says: they hear of it one after the other."""
    deadline = time.monotonic() + _PATIENCE_S
    agreed = False
    while not agreed:
        moving = await admin.moves()
        now = await _as_all_see_it(admin, ids)
        agreed = now is not None and all(now[each] == move.replicas for each, move in moving.items())
        assert time.monotonic() < deadline, "brokers do not hear of a move"
        await asyncio.sleep(0.05)


async def _as_all_see_it(
    admin: KafkaAdmin, ids: tuple[int, ...]
) -> dict[TopicPartition, tuple[int, ...]] | None:
    """Every broker asked by itself; nothing if they do not say the same."""
    views = []
    for broker in ids:
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in _NAMES]
        answer = await admin._link.ask(MetadataRequest(topics=names), broker)
        views.append(
            {
                TopicPartition(topic.name, each.partition_index): tuple(each.replica_nodes)
                for topic in answer.topics
                for each in topic.partitions
            }
        )
    return views[0] if all(view == views[0] for view in views) else None


_NO_LINE = re.compile(r"\s+at |\s+\.\.\. |Caused by: |[\w.$]+(Exception|Error)\b| at \[Source")
_CLASS = re.compile(r"^(Error: )?([\w$]+\.)+[\w$]+(Exception|Error): ")


def _lines(outcome: Outcome, case: Case, *, dirs_told: bool) -> list[str]:
    """What scripts parse: without stack traces and class names, and with what chance decides taken out."""
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
            ground.do(lambda admin: _settled(admin, ground.ids))
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
    """The cases' names alone, which do not depend on a cluster."""
    places = dict.fromkeys(range(3), ("/x", "/y")) if dirs else None
    return [case.name for case in cases((0, 1, 2), places)]


def _case(ground: Ground, name: str) -> Case:
    (found,) = (case for case in cases(ground.ids, ground.dirs) if case.name == name)
    return found


@pytest.mark.parametrize("name", _named(dirs=True))
def test_on_the_embedded_cluster(name: str, ours: Ground, original: OriginalTool, tmp_path: Path) -> None:
    _both(_case(ours, name), ours, original, tmp_path, dirs_told=False)


@pytest.mark.full
@pytest.mark.parametrize("name", _named(dirs=True))
def test_as_todays_tool(name: str, ours: Ground, original_4: OriginalTool, tmp_path: Path) -> None:
    case = _case(ours, name)
    if name in ("generate for too few brokers", "generate for a broker that is not there"):
        case = replace(case, loose=True)  # version 4 has other words for it; ours are version 3's
    _both(case, ours, original_4, tmp_path, dirs_told=True)


@pytest.mark.full
@pytest.mark.parametrize("name", _named(dirs=False))
def test_on_apache_kafka(name: str, real: Ground, original: OriginalTool, tmp_path: Path) -> None:
    _both(_case(real, name), real, original, tmp_path, dirs_told=False)


def test_what_is_not_copied(ours: Ground, original: OriginalTool, tmp_path: Path) -> None:
    """The original overlooks moves that only add replicas when it is to cancel them; ours does not."""
    a, b, c = ours.ids
    wide = tmp_path / "wide.json"
    wide.write_text(json.dumps(moves(("big", 0, [a, b, c]))))
    where = ("--bootstrap-server", ours.bootstrap)
    file = ("--reassignment-json-file", str(wide))
    ours.do(lambda admin: _reset(admin, ours))
    assert _restow(*where, "--execute", *file, "--throttle", "1000").code == 0
    ours.do(lambda admin: _settled(admin, ours.ids))
    theirs = original.run(*where, "--cancel", *file, "--preserve-throttles")
    assert "None of the specified partition reassignments are active." in theirs.out
    mine = _restow(*where, "--cancel", *file)
    assert "Successfully cancelled partition reassignment for: big-0" in mine.out
    assert ours.do(lambda admin: admin.moves()) == {}
