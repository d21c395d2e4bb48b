"""Compare what a run shows with the disks, on any cluster."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, ConnectionSettings, connected
from restow.execute.progress.outcome import Ending
from restow.execute.progress.watch import watch
from restow.execute.run.options import RunOptions
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.snapshot import capture
from tests.clients.watched_run import WatchedRun, fill, make, plan_to

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from restow.client import KafkaAdmin
    from restow.execute.progress.status import RunStatus

OFTEN = {"survey_every_s": 0.2, "look_every_s": 0.05}


async def on_disk(admin: KafkaAdmin, broker: int, topic: str, log_dir: str | None = None) -> int:
    """Return the bytes of a topic on a broker, in all log dirs or in one."""
    told = (await admin.describe_log_dirs([broker]))[broker]
    assert not isinstance(told, BrokerError)
    return sum(
        each.size_bytes
        for each in told.replicas
        if each.partition.topic == topic and not each.future and log_dir in (None, each.log_dir)
    )


def shown(status: RunStatus) -> tuple[object, ...]:
    report = status.report
    return status.steps_done, status.steps_left, report.done_bytes, report.to_do_bytes


async def watched(stage: WatchedRun) -> set[tuple[object, ...]]:
    """Return what `restow watch` shows during the run, and at its end."""
    seen: set[tuple[object, ...]] = set()
    await stage.until(lambda: stage.statuses, "the run stands somewhere")
    async with aclosing(watch(stage.world, 0.05)) as statuses:
        async for each in statuses:
            if not each.run:
                break
            seen.add(shown(each))
            assert each.others is None
    return seen


async def move_between_brokers(
    bootstrap: str, folder: Path, brokers: Sequence[int], *, size: int, rate: int
) -> None:
    """Move six partitions led by the first of three brokers from the second to the third, two at a time, with
    `restow watch` beside it.
    """
    leader, old, new = brokers
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        await make(admin, "t", [(leader, old)] * 6)
        await fill(bootstrap, "t", 6, size)
        targets = {TopicPartition("t", number): (leader, new) for number in range(6)}
        plan = await plan_to(admin, targets, Limits(moves_in=2, moves_out=2))
        stage = WatchedRun(admin, folder)
        run = stage.start(plan, RunOptions(throttle=ThrottleRates(rate=rate), **OFTEN))
        seen = await watched(stage)
        outcome = await run
        assert outcome.ending is Ending.DONE

        lies = await on_disk(admin, new, "t")
        last = stage.statuses[-1]
        assert last.report.done_bytes == last.report.to_do_bytes == lies
        received = {each.broker: each.done_bytes for each in last.report.brokers if each.to_do_bytes}
        sent = {each.broker: each.sent_bytes for each in last.report.brokers if each.to_send_bytes}
        assert (received, sent) == ({new: lies}, {leader: lies})
        assert (last.steps_done, last.steps_left, last.ended) == (6, 0, "done")
        assert all(each.report.done_bytes <= each.report.to_do_bytes for each in stage.statuses)
        assert {each.steps_done + each.steps_left for each in stage.statuses} == {6}

        assert seen <= {shown(each) for each in stage.statuses}, "watch shows what the run shows"
        assert len(seen) > 1

        summary = outcome.summary
        assert summary is not None
        assert (summary.partitions_moved, summary.partitions_left) == (6, 0)
        assert (summary.copied_bytes, summary.left_bytes, summary.busiest_bytes) == (lies, 0, lies)
        least_s = plan.bytes_to_copy / rate
        assert 0.98 * least_s <= summary.predicted_s <= 1.1 * least_s + 2
        told = [each.predicted for each in stage.statuses]
        assert [each for each in told if each is None] == []
        (kept,) = (await stage.world.runs()).all()
        prediction = kept.ledger.prediction
        assert prediction is not None
        assert prediction.seconds.p50 == pytest.approx(summary.predicted_s, abs=0.001)
        assert prediction.curve[-1][1] == pytest.approx(plan.bytes_to_copy, rel=0.01)
        (ends_ms,) = {each.ends_ms for each in told if each is not None}
        assert ends_ms == pytest.approx(prediction.ends_ms, abs=2)
        assert kept.ledger.took_s is not None
        assert told[-2].elapsed_s <= kept.ledger.took_s <= summary.seconds  # type: ignore[union-attr]
        assert summary.error == pytest.approx(summary.seconds / summary.predicted_s - 1)
        first = next(each.report for each in stage.statuses if each.report.eta_s is not None)
        left_s = (first.to_do_bytes - first.done_bytes) / rate  # some may have arrived by then
        assert first.eta_s == pytest.approx(left_s, rel=0.2)


async def move_between_log_dirs(
    bootstrap: str, folder: Path, brokers: Sequence[int], *, size: int, rate: int
) -> None:
    """Move two replicas of the first broker to the other of its two log dirs."""
    one, other = brokers[:2]
    async with connected(ConnectionSettings(bootstrap=bootstrap)) as admin:
        await make(admin, "within", [(one, other)] * 2)
        await fill(bootstrap, "within", 2, size)
        snapshot = await capture(admin, SystemClock())
        where = {}
        for name in (TopicPartition("within", 0), TopicPartition("within", 1)):
            found = snapshot.partition(name)
            assert found is not None
            (here,) = (copy.log_dir for copy in found.copies if copy.broker == one)
            (where[name],) = (each.path for each in snapshot.broker[one].log_dirs if each.path != here)
        targets = [
            Target(partition=name, replicas=(one, other), log_dirs=(path, "any"))
            for name, path in where.items()
        ]
        plan = plan_from_targets(snapshot, targets, created_ms=1)
        stage = WatchedRun(admin, folder)
        outcome = await stage.start(plan, RunOptions(throttle=ThrottleRates(dir_rate=rate), **OFTEN))
        assert outcome.ending is Ending.DONE

        lies = {path: await on_disk(admin, one, "within", path) for path in sorted(set(where.values()))}
        last = stage.statuses[-1].report
        assert last.done_bytes == last.to_do_bytes == sum(lies.values()) >= size
        assert {each.path: each.done_bytes for each in last.dirs} == lies
        partly = [each for each in stage.statuses if 0 < each.report.done_bytes < each.report.to_do_bytes]
        assert partly, "progress was seen under way"
        assert all(each.report.eta_s is not None for each in partly)
        assert any(copy.log_dir == where[copy.partition] for each in partly for copy in each.report.copying)
        assert outcome.summary is not None
        assert outcome.summary.copied_bytes == sum(lies.values())
        assert outcome.summary.busiest == f"broker {one} copied between its log dirs"
