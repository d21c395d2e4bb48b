"""What a run shows is what happened: bytes, steps and the summary, held against what lies on the disks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from restow.client import BrokerError, Settings, connected
from restow.execute.options import Options
from restow.execute.outcome import Ending
from restow.execute.throttles import Wanted
from restow.execute.watch import watch
from restow.model import Limits, TopicPartition
from restow.plan.pin import Target, plan_from_targets
from restow.runtime.clock import SystemClock
from restow.snapshot import capture
from tests.clients.embedded import embedded
from tests.clients.watched_run import WatchedRun, fill, make, plan_to

if TYPE_CHECKING:
    from pathlib import Path

    from restow.client import KafkaAdmin
    from restow.execute.standing import Standing
    from tests.clients.embedded import Running

OFTEN = {"survey_every_s": 0.2, "look_every_s": 0.05}
SLOWLY = 200_000


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    """What kafka-python logs of a lost connection holds on to its socket for as long as the log is kept."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


async def on_disk(admin: KafkaAdmin, broker: int, topic: str, log_dir: str | None = None) -> int:
    """Bytes of a topic that a broker has, in all directories or in one."""
    told = (await admin.disks([broker]))[broker]
    assert not isinstance(told, BrokerError)
    return sum(
        each.size_bytes
        for each in told.replicas
        if each.partition.topic == topic and not each.future and log_dir in (None, each.log_dir)
    )


def shown(standing: Standing) -> tuple[object, ...]:
    report = standing.report
    return standing.steps_done, standing.steps_left, report.done_bytes, report.to_do_bytes


def test_bytes_and_steps_of_a_run_are_those_that_were_copied(tmp_path: Path) -> None:
    """Two brokers receive, one at a time, so that steps wait; somebody watches meanwhile."""

    async def main(running: Running) -> None:
        async with connected(Settings(bootstrap=running.bootstrap)) as admin:
            await make(admin, "t", [(0, 1)] * 6)
            await fill(running.bootstrap, "t", 6, 1_200_000)
            targets = {TopicPartition("t", number): (0, 2 + number % 2) for number in range(6)}
            plan = await plan_to(admin, targets, Limits(moves_in=1, moves_out=2))
            stage = WatchedRun(admin, tmp_path)
            run = stage.start(plan, Options(throttle=Wanted(rate=SLOWLY), **OFTEN))
            seen = await watched(stage)
            outcome = await run
            assert outcome.ending is Ending.DONE

            lies = {broker: await on_disk(admin, broker, "t") for broker in (2, 3)}
            last = stage.standings[-1]
            assert last.report.done_bytes == last.report.to_do_bytes == sum(lies.values())
            received = {each.broker: each.done_bytes for each in last.report.brokers if each.to_do_bytes}
            assert received == lies
            sent = {each.broker: each.sent_bytes for each in last.report.brokers if each.to_send_bytes}
            assert sent == {0: sum(lies.values())}
            assert (last.steps_done, last.steps_left, last.ended) == (6, 0, "done")
            assert all(each.report.done_bytes <= each.report.to_do_bytes for each in stage.standings)
            assert {each.steps_done + each.steps_left for each in stage.standings} == {6}

            assert seen <= {shown(each) for each in stage.standings}, "watch shows what the run shows"
            assert len(seen) > 1

            summary = outcome.summary
            assert summary is not None
            assert (summary.partitions_moved, summary.partitions_left) == (6, 0)
            assert (summary.copied_bytes, summary.left_bytes) == (sum(lies.values()), 0)
            assert (summary.busiest, summary.busiest_bytes) == ("broker 0 sent", sum(lies.values()))
            assert summary.predicted_s == pytest.approx(plan.bytes_to_copy / SLOWLY)
            first = next(each.report for each in stage.standings if each.report.eta is not None)
            assert first.eta is not None
            (source,) = (each for each in first.brokers if each.to_send_bytes)
            left_s = (source.to_send_bytes - source.sent_bytes) / SLOWLY  # some may have arrived by then
            assert first.eta.soonest_s == pytest.approx(left_s, rel=0.2)

    async def watched(stage: WatchedRun) -> set[tuple[object, ...]]:
        """What `restow watch` shows while the run is under way, and at its end."""
        seen: set[tuple[object, ...]] = set()
        await stage.until(lambda: stage.standings, "the run stands somewhere")
        async with aclosing(watch(stage.world, 0.05)) as standings:
            async for each in standings:
                if not each.run:
                    break
                seen.add(shown(each))
                assert each.others is None
        return seen

    with embedded(4) as running:
        asyncio.run(main(running))


def test_a_run_that_is_left_says_what_is_left(tmp_path: Path) -> None:
    async def main(running: Running) -> None:
        async with connected(Settings(bootstrap=running.bootstrap)) as admin:
            await make(admin, "t", [(0, 1)] * 2)
            await fill(running.bootstrap, "t", 2, 400_000)
            plan = await plan_to(admin, {TopicPartition("t", 0): (0, 2), TopicPartition("t", 1): (0, 2)})
            stage = WatchedRun(admin, tmp_path)
            run = stage.start(plan, Options(throttle=Wanted(rate=1_000), **OFTEN))
            await stage.until(lambda: stage.standings and stage.standings[-1].under_way == 2, "both begin")
            run.cancel()
            outcome = await run
            assert (outcome.ending, outcome.summary is not None) == (Ending.LEFT, True)
            assert outcome.summary is not None
            assert (outcome.summary.partitions_moved, outcome.summary.partitions_left) == (0, 2)
            assert outcome.summary.copied_bytes + outcome.summary.left_bytes == plan.bytes_to_copy

    with embedded(3) as running:
        asyncio.run(main(running))


def test_a_run_between_log_dirs_shows_bytes_and_an_estimate(tmp_path: Path) -> None:
    async def main(running: Running) -> None:
        async with connected(Settings(bootstrap=running.bootstrap)) as admin:
            await make(admin, "t", [(0, 1)] * 2)
            await fill(running.bootstrap, "t", 2, 1_000_000)
            snapshot = await capture(admin, SystemClock())
            targets, where = [], {}
            for number in range(2):
                name = TopicPartition("t", number)
                found = snapshot.partition(name)
                assert found is not None
                (here,) = (copy.log_dir for copy in found.copies if copy.broker == 0)
                (there,) = (each.path for each in snapshot.broker[0].log_dirs if each.path != here)
                where[name] = there
                targets.append(Target(partition=name, replicas=(0, 1), log_dirs=(there, "any")))
            plan = plan_from_targets(snapshot, targets, created_ms=1)
            stage = WatchedRun(admin, tmp_path)
            outcome = await stage.start(plan, Options(throttle=Wanted(dir_rate=SLOWLY), **OFTEN))
            assert outcome.ending is Ending.DONE

            lies = [await on_disk(admin, 0, "t", path) for path in sorted(set(where.values()))]
            last = stage.standings[-1].report
            assert last.done_bytes == last.to_do_bytes == sum(lies) >= 1_000_000
            assert [(each.path, each.done_bytes) for each in last.dirs] == [
                *zip(sorted(set(where.values())), lies, strict=True)
            ]
            partly = [
                each for each in stage.standings if 0 < each.report.done_bytes < each.report.to_do_bytes
            ]
            assert partly, "progress was seen under way"
            assert all(each.report.eta is not None for each in partly)
            assert any(
                copy.log_dir == where[copy.partition] for each in partly for copy in each.report.copying
            )
            assert outcome.summary is not None
            assert outcome.summary.copied_bytes == sum(lies)
            assert outcome.summary.busiest == "broker 0 copied between its log dirs"

    with embedded(2, log_dirs=2, data=tmp_path / "data") as running:
        asyncio.run(main(running))
