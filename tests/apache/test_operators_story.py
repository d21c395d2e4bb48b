"""The operator's story on six brokers in three racks, each with two log dirs.

Each act is a command as an operator types it. What its screen says is compared with the brokers' folders,
with the reassignments that the controller lists, and with the configs: bytes to the last one, replicas in
their order. At the end of each act nothing moves, and no throttle is left.
"""

from __future__ import annotations

import gc
import json
import logging
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.brokers import wait_for
from harness.jars import KAFKA_4
from restow.client import NewTopic
from restow.model import TopicPartition
from tests.apache.story_stage import FAST, SLOW, Stage
from tests.apache.traffic import WAIT_S, load
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.client import KafkaAdmin
    from tests.apache.story_stage import Bytes

    Cluster = tuple[str, Callable[[], Bytes], tuple[int, ...], Callable[[int], None]]

RACKS = ("a", "b", "c")
ORDERS, PAYMENTS, CLOSE, ALONE = "orders", "payments", "close", "alone"
BYTES_EACH = {ORDERS: 3_000_000, PAYMENTS: 1_000_000, CLOSE: 700_000, ALONE: 500_000}


def logs_below(folders: dict[int, Path]) -> Bytes:
    """Return the bytes of the segments of each replica on disk, by broker and partition."""
    found: Bytes = {}
    for broker, folder in folders.items():
        for log in folder.glob("*/*-*/*.log"):
            name = log.parent.name
            if not name.endswith(("-delete", "-future", "-stray")):
                try:
                    size = log.stat().st_size
                except FileNotFoundError:  # deleted meanwhile
                    continue
                found[broker, name] = found.get((broker, name), 0) + size
    return found


@contextmanager
def ours(folder: Path) -> Iterator[Cluster]:
    with embedded(6, data=folder, racks=RACKS, log_dirs=2) as running:
        homes = {each: folder / f"broker-{each}" for each in range(6)}
        yield running.bootstrap, lambda: logs_below(homes), tuple(range(6)), running.kill


@contextmanager
def todays(folder: Path) -> Iterator[Cluster]:
    with apache_kafka(folder, nodes=6, version=KAFKA_4, heap="320m", log_dirs=2, racks=RACKS) as cluster:
        homes = {each: folder / f"node-{each}" for each in cluster.brokers}
        yield (
            cluster.bootstrap,
            lambda: logs_below(homes),
            tuple(homes),
            lambda broker: cluster.brokers[broker].kill(),
        )


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "cluster",
    [pytest.param(ours, id="embedded"), pytest.param(todays, id="4.3.1", marks=pytest.mark.apache)],
)
def test_operators_story_is_true_to_the_byte(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        with needs_kafka():
            bootstrap, disks, ids, kill = stack.enter_context(cluster(tmp_path / "cluster"))
        stage = Stage(bootstrap, disks, tmp_path, capsys)
        create(stage, ids)
        try:
            balance_and_undo(stage)
            killed_and_resumed(stage)
            steered_beside_a_second_operator(stage)
            cancelled(stage)
            drift_and_edits(stage, ids)
            spread_over_racks(stage, ids)
            drained(stage, ids)
            more_replicas_and_fewer(stage)
            replaced_and_demoted(stage, ids)
            between_log_dirs(stage, ids)
            drained_after_its_death(stage, ids, kill)
        finally:
            with capsys.disabled():
                sys.stdout.write("\n  ".join(("", *stage.told, "")))


def create(stage: Stage, ids: tuple[int, ...]) -> None:
    """Put all orders on three brokers, one topic in a single rack, and another's only replica on the last."""
    one, two, three, four, _, last = ids
    heavy = ((one, two), (two, one), (one, three), (three, two))
    rows = {
        ORDERS: [heavy[number % 4] for number in range(16)],
        PAYMENTS: [(ids[number % 6], ids[(number + 1) % 6]) for number in range(6)],
        CLOSE: [(one, four), (four, one)],
        ALONE: [(last,)],
    }
    topics = [NewTopic(name=name, by_hand=dict(enumerate(row))) for name, row in rows.items()]
    assert stage.ask(lambda admin: admin.create_topics(topics)) == dict.fromkeys(rows)
    for name, row in rows.items():
        load(stage.bootstrap, name, len(row), BYTES_EACH[name])
    shares_a_rack = {"replicas share a rack"}
    wait_for("all is replicated", lambda: stage.findings() == shares_a_rack, WAIT_S)


def balance_and_undo(stage: Stage) -> None:
    before = stage.replicas()
    planned = stage.plans("balance")
    assert planned["complete"]
    rehearsed = stage.types("rehearse", stage.plan, "--throttle", FAST, *stage.journal)
    assert rehearsed["problems"] == []
    run = ("execute", stage.plan, "--throttle", FAST)
    stage.carries_out("balance", run, copied=planned["copied_bytes"])
    stage.is_verified()
    moved = stage.replicas()
    assert {name for name in before if before[name] != moved[name]} == moves_of(stage.plan)
    stage.carries_out("undo of it", ("undo", "--throttle", FAST), copied=planned["copied_bytes"])
    assert stage.replicas() == before


def killed_and_resumed(stage: Stage) -> None:
    before = stage.replicas()
    with stage.beside("execute", stage.plan, "--throttle", SLOW, "--yes") as run:
        run.copies()
        run.kill()
    assert "run without an end" in stage.findings()
    under_way = stage.moving()
    assert under_way
    assert stage.runs("resume")["under_way"] == len(under_way)
    assert stage.throttled(), "moves of a killed run stay throttled"
    assert stage.runs("resume", "--yes", "--throttle", FAST)["outcome"] == "done"
    stage.nothing_is_left()
    stage.is_verified()
    with stage.beside("undo", "--throttle", SLOW, "--yes") as run:
        run.copies()
        run.kill()
    assert stage.runs("resume", "--yes", "--throttle", FAST)["outcome"] == "done"
    stage.nothing_is_left()
    assert stage.replicas() == before
    stage.told.append("killed, resumed, undone, killed, resumed: replicas as before")


def steered_beside_a_second_operator(stage: Stage) -> None:
    before = stage.replicas()
    with stage.beside("execute", stage.plan, "--throttle", SLOW, "--yes") as run:
        run.copies()
        other = ("--journal", stage.file("another machine"))
        refused, why = stage.asks("execute", stage.plan, "--throttle", FAST, "--yes", *other)
        assert (refused, "carries out a run" in str(why)) == (1, True), why
        stage.runs("control", "--pause")
        run.until(lambda event: event.get("paused"))
        stage.runs("control", "--go-on", "--throttle", FAST)
        ended = run.ends()
    assert ended["outcome"] == "done", ended
    assert ended["summary"]["prediction_error"] is None, "an operator has changed its throttle"
    stage.nothing_is_left()
    stage.is_verified()
    stage.carries_out("undo after control", ("undo", "--throttle", FAST))
    assert stage.replicas() == before


def cancelled(stage: Stage) -> None:
    before = stage.replicas()
    with stage.beside("execute", stage.plan, "--throttle", SLOW, "--yes") as run:
        run.copies()
        stage.runs("cancel", "--yes")
        ended = run.ends()
    assert ended["outcome"] == "cancelled", ended
    stage.nothing_is_left()
    arrived = {name for name, row in stage.replicas().items() if row != before[name]}
    assert len(arrived) == ended["summary"]["partitions_moved"]
    if arrived:
        assert stage.runs("undo", "--yes", "--throttle", FAST)["outcome"] == "done"
    assert stage.replicas() == before
    stage.told.append(f"cancelled: {len(arrived)} had arrived, and are back")


def drift_and_edits(stage: Stage, ids: tuple[int, ...]) -> None:
    """Refuse a plan that was edited, that nobody approved, or whose partitions have changed."""
    before = stage.replicas()
    text = Path(stage.plan).read_text(encoding="utf-8")
    plan = json.loads(text)
    plan["moves"][0]["after"].reverse()
    edited = Path(stage.file("edited.json"))
    edited.write_text(json.dumps(plan), encoding="utf-8")
    go = ("--throttle", FAST, "--yes", *stage.journal)
    code, why = stage.asks("execute", str(edited), *go)
    assert (code, "digest" in why) == (2, True), why
    code, why = stage.asks("execute", stage.plan, "--digest", "sha256:" + "0" * 12, *go)
    assert (code, "digest" in why) == (2, True), why
    changed = min(moves_of(stage.plan), key=str)
    elsewhere = (before[changed][0], next(each for each in ids if each not in before[changed]))

    async def move(admin: KafkaAdmin) -> Any:
        return await admin.alter_partition_reassignments({changed: elsewhere})

    assert stage.ask(move) == {changed: None}
    wait_for("somebody else has moved it", lambda: stage.replicas()[changed] == elsewhere, WAIT_S)
    stage.nothing_is_left()  # a replica that is still on disk would not count as new when it comes back
    code, why = stage.asks("execute", stage.plan, *go)
    assert (code, str(changed) in str(why)) == (1, True), why
    there = {**before, changed: elsewhere}
    assert stage.replicas() == there
    rebased = stage.types("plan", "rebase", stage.plan, "-o", stage.file("rebased.json"))
    stage.carries_out(
        "rebased",
        ("execute", stage.file("rebased.json"), "--throttle", FAST),
        copied=rebased["bytes_to_copy"],
    )
    stage.carries_out("undo of it", ("undo", "--throttle", FAST))
    assert stage.replicas() == there


def spread_over_racks(stage: Stage, ids: tuple[int, ...]) -> None:
    close = [name for name, row in stage.replicas().items() if len(racks_of(ids, row)) < len(row)]
    assert {name.topic for name in close} >= {CLOSE}
    planned = stage.plans("fix-racks")
    assert planned["moves"] == len(close)
    stage.carries_out("racks", ("execute", stage.plan, "--throttle", FAST), copied=planned["copied_bytes"])
    stage.is_verified()
    assert all(len(racks_of(ids, row)) == len(row) for row in stage.replicas().values())


def drained(stage: Stage, ids: tuple[int, ...]) -> None:
    fourth = ids[3]
    planned = stage.plans("drain", str(fourth), "--balance")
    stage.carries_out("drain", ("execute", stage.plan, "--throttle", FAST), copied=planned["copied_bytes"])
    stage.is_verified()
    assert not any(fourth in row for row in stage.replicas().values())
    assert not any(broker == fourth and "__" not in name for broker, name in stage.disks())


def more_replicas_and_fewer(stage: Stage) -> None:
    for factor in (3, 2):
        planned = stage.plans("change-rf", str(factor), "--topics", PAYMENTS)
        stage.carries_out(
            f"replication factor {factor}",
            ("execute", stage.plan, "--throttle", FAST),
            copied=planned["copied_bytes"],
        )
        stage.is_verified()
        assert {len(row) for name, row in stage.replicas().items() if name.topic == PAYMENTS} == {factor}


def replaced_and_demoted(stage: Stage, ids: tuple[int, ...]) -> None:
    """Broker 4 of the same rack takes what broker 1 has; then it loses its leaders."""
    first, fourth = ids[0], ids[3]
    before = stage.replicas()
    planned = stage.plans("replace", f"{first}:{fourth}")
    stage.carries_out("replace", ("execute", stage.plan, "--throttle", FAST), copied=planned["copied_bytes"])
    stage.is_verified()
    wanted = {name: tuple(fourth if each == first else each for each in row) for name, row in before.items()}
    assert stage.replicas() == wanted
    stage.plans("demote", str(fourth))
    stage.carries_out("demote", ("execute", stage.plan, "--throttle", FAST), copied=0)
    stage.is_verified()
    wait_for("it leads nothing", lambda: fourth not in stage.leaders().values(), WAIT_S)


def between_log_dirs(stage: Stage, ids: tuple[int, ...]) -> None:
    """Even out the log dirs of a broker that has everything in one.

    Copies within a broker are no new replicas: the disks hold what they held.
    """
    stage.crowds(ids[1])
    before = stage.disks()
    planned = stage.plans("disks")
    assert planned["between_dirs_bytes"] == planned["copied_bytes"] > 0
    ended = stage.runs("execute", stage.plan, "--throttle", FAST, "--yes")
    assert ended["outcome"] == "done"
    stage.nothing_is_left()
    stage.is_verified()
    ours = {each: size for each, size in before.items() if "__" not in each[1]}
    assert ours.items() <= stage.disks().items()
    slack = stage.slack(moves_of(stage.plan))
    assert abs(ended["summary"]["copied_bytes"] - planned["copied_bytes"]) <= slack
    stage.tells("log dirs", ended["summary"], planned["copied_bytes"])


def drained_after_its_death(stage: Stage, ids: tuple[int, ...], kill: Callable[[int], None]) -> None:
    """Only what has another replica can be rebuilt; the rest is named."""
    last = ids[-1]
    kill(last)
    wait_for("its death is known", lambda: "offline" in stage.findings(), WAIT_S)
    told = stage.plans("drain", str(last), code=3)
    assert [each["partition"] for each in told["leaves"]] == [f"{ALONE}-0"]
    planned = stage.plans("drain", str(last), "--partial")
    run = ("execute", stage.plan, "--throttle", FAST, "--partial")
    stage.carries_out("dead broker", run, copied=planned["copied_bytes"])
    left = {name for name, row in stage.replicas().items() if last in row}
    assert left == {TopicPartition(ALONE, 0)}
    _, verdict = stage.asks("verify", stage.plan, *stage.journal)
    failing = [each["evidence"] for each in verdict["checks"] if each["outcome"] == "fails"]
    assert any(f"{ALONE}-0" in each for each in failing)


def moves_of(plan: str) -> set[TopicPartition]:
    moves = json.loads(Path(plan).read_text(encoding="utf-8"))["moves"]
    return {TopicPartition(each["topic"], each["partition"]) for each in moves} - {
        TopicPartition("__consumer_offsets", 0)
    }


def racks_of(ids: tuple[int, ...], row: tuple[int, ...]) -> set[str]:
    return {RACKS[ids.index(each) % len(RACKS)] for each in row}
