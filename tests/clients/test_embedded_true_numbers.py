"""A run shows what happened: bytes, steps and the summary, compared with the disks."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from restow.client import ConnectionSettings, connected
from restow.execute.progress.outcome import Ending
from restow.execute.run.options import RunOptions
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import TopicPartition
from tests.clients.embedded import embedded
from tests.clients.true_numbers import OFTEN, move_between_brokers, move_between_log_dirs
from tests.clients.watched_run import WatchedRun, fill, make, plan_to

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.embedded import Running

SLOWLY = 200_000


@pytest.fixture(autouse=True)
def hushed(caplog: pytest.LogCaptureFixture) -> None:
    """Silence kafka-python's log, whose records of a lost connection would keep its socket open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")


def test_run_shows_the_bytes_and_steps_that_were_copied(tmp_path: Path) -> None:
    with embedded(3) as running:
        asyncio.run(move_between_brokers(running.bootstrap, tmp_path, (0, 1, 2), size=1_200_000, rate=SLOWLY))


def test_run_that_is_left_says_what_is_left(tmp_path: Path) -> None:
    async def main(running: Running) -> None:
        async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
            await make(admin, "t", [(0, 1)] * 2)
            await fill(running.bootstrap, "t", 2, 400_000)
            plan = await plan_to(admin, {TopicPartition("t", 0): (0, 2), TopicPartition("t", 1): (0, 2)})
            stage = WatchedRun(admin, tmp_path)
            run = stage.start(plan, RunOptions(throttle=ThrottleRates(rate=1_000), **OFTEN))
            await stage.until(lambda: stage.statuses and stage.statuses[-1].under_way == 2, "both begin")
            run.cancel()
            outcome = await run
            assert (outcome.ending, outcome.summary is not None) == (Ending.LEFT, True)
            assert outcome.summary is not None
            assert (outcome.summary.partitions_moved, outcome.summary.partitions_left) == (0, 2)
            assert outcome.summary.copied_bytes + outcome.summary.left_bytes == plan.bytes_to_copy

    with embedded(3) as running:
        asyncio.run(main(running))


def test_run_between_log_dirs_shows_bytes_and_an_estimate(tmp_path: Path) -> None:
    with embedded(2, log_dirs=2, data=tmp_path / "data") as running:
        asyncio.run(move_between_log_dirs(running.bootstrap, tmp_path, (0, 1), size=1_000_000, rate=SLOWLY))
