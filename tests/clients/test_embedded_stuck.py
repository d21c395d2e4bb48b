"""Every cause of a stall, recognized on a cluster where it occurs; and the automatic throttle.

dead target         a broker that gets a replica is killed
leader gone         all brokers with the data are killed
quota               another tool sets a rate during the run
no progress         nothing is copied, for no known reason
throttle below …    more is produced than the throttle lets through
full dir            is in test_embedded_run_faults
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from restow.client import ConfigResource, ConnectionSettings, connected
from restow.execute.run.control import ControlRequest
from restow.execute.run.options import Guards, RunOptions
from restow.execute.throttle import auto
from restow.execute.throttle.throttles import FOLLOWER_RATE, ThrottleRates
from restow.model import Limits, TopicPartition
from tests.clients.embedded import embedded
from tests.clients.watched_run import WatchedRun, fill, make, plan_to, replicas_of, throttles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.embedded import Running

MOVED = TopicPartition("moved", 0)
LOOK = {"survey_every_s": 0.3, "look_every_s": 0.05, "stall_s": 1.5}
ANY = Guards(under_replicated=None, offline=None)


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets of dead brokers to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@contextmanager
def written_to(bootstrap: str, bytes_per_s: int) -> Iterator[None]:
    """Write to the moving partition at a constant rate."""
    over = threading.Event()

    def write() -> None:
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        while not over.wait(0.1):
            producer.produce(MOVED.topic, bytes(bytes_per_s // 10), partition=MOVED.partition)
            producer.poll(0)
        producer.flush(60)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


def test_every_cause_of_a_stall_but_a_full_log_dir_is_named(tmp_path: Path) -> None:
    """One move, slowed down again and again; at the end it arrives."""

    async def main(running: Running) -> None:
        async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
            await make(admin, MOVED.topic, [(0, 1)])
            await fill(running.bootstrap, MOVED.topic, 1, 1_000_000)
            stage = WatchedRun(admin, tmp_path)
            options = RunOptions(throttle=ThrottleRates(rate=10_000), guards=ANY, **LOOK)  # type: ignore[arg-type]
            run = stage.start(await plan_to(admin, {MOVED: (0, 2)}), options)

            with written_to(running.bootstrap, 100_000):
                await stage.until(
                    lambda: "throttle below the incoming rate" in stage.still(), "the throttle is named"
                )
            assert "raise the throttle" in stage.still()["throttle below the incoming rate"].advice

            stage.request(ControlRequest(throttle="1B/s"))
            await stage.until(lambda: "no progress" in stage.still(), "that nothing happens is named")
            assert "look at the log of broker 2" in stage.still()["no progress"].advice

            await asyncio.to_thread(running.kill, 2)
            await stage.until(lambda: "dead target" in stage.still(), "the dead broker is named")
            assert stage.still()["dead target"].evidence == "broker 2 is not there"
            await asyncio.to_thread(running.start, 2)
            await stage.until(lambda: "dead target" not in stage.still(), "it is there again")

            await asyncio.to_thread(running.kill, 1)
            await asyncio.to_thread(running.kill, 0)
            await stage.until(lambda: "leader gone" in stage.still(), "that nobody leads is named")
            await asyncio.to_thread(running.start, 0)
            await asyncio.to_thread(running.start, 1)
            await stage.until(lambda: "leader gone" not in stage.still(), "somebody leads")

            theirs = ConfigResource("broker", "2")
            assert await admin.incremental_alter_configs({theirs: {FOLLOWER_RATE: "2"}}) == {theirs: None}
            await stage.until(lambda: "quota" in stage.still(), "that somebody else slows it is named")
            assert "somebody else limits replication to 2 B/s" in stage.still()["quota"].evidence
            stage.request(ControlRequest(throttle="50MB/s"))
            assert await admin.incremental_alter_configs({theirs: {FOLLOWER_RATE: None}}) == {theirs: None}

            outcome = await asyncio.wait_for(run, 120)
            assert outcome.is_good, outcome
            assert await replicas_of(admin, MOVED.topic) == [(0, 2)]
            assert await throttles(admin) == {}

    with embedded(4) as running:
        asyncio.run(main(running))


def test_automatic_throttle_rises_and_falls_with_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rises while it is used up, and falls when a partition that does not move loses an in-sync replica.

    On a busy machine answers are slow at times. If it were cut for that, it might be at its minimum when the
    replica is lost; and at a much higher rate, all might have arrived by then.
    """
    monkeypatch.setattr(auto, "START_FLOOR", 200_000)
    monkeypatch.setattr(auto, "FLOOR", 50_000)
    monkeypatch.setattr(auto, "_SLOW_S", 3600.0)

    async def main(running: Running) -> None:
        async with connected(ConnectionSettings(bootstrap=running.bootstrap)) as admin:
            await make(admin, MOVED.topic, [(0, 1)] * 4)
            await make(admin, "beside", [(1, 3)])
            await fill(running.bootstrap, MOVED.topic, 4, 40_000_000)
            await fill(running.bootstrap, "beside", 1, 100_000)
            stage = WatchedRun(admin, tmp_path)
            aims = {TopicPartition(MOVED.topic, number): (0, 2) for number in range(4)}
            options = RunOptions(auto=True, guards=ANY, **LOOK)  # type: ignore[arg-type]
            with written_to(running.bootstrap, 20_000):
                run = stage.start(await plan_to(admin, aims, Limits(moves_in=4)), options)
                await stage.until(lambda: _decided(stage, "all of it is used"), "it is raised")
                await asyncio.to_thread(running.kill, 3)
                await stage.until(lambda: _decided(stage, "lost an in-sync replica"), "it is cut")
            await asyncio.to_thread(running.start, 3)
            stage.request(ControlRequest(throttle="none"))
            outcome = await asyncio.wait_for(run, 120)
            assert outcome.is_good, outcome
            assert await throttles(admin) == {}
            rates = [int(str(each.facts["rate"])) for each in stage.told("throttle decided")]
            whys = [str(each.facts["why"]) for each in stage.told("throttle decided")]
            assert "are written to the busiest broker" in whys[0]
            up = next(number for number, why in enumerate(whys) if "all of it is used" in why)
            down = next(number for number, why in enumerate(whys) if "lost an in-sync replica" in why)
            assert rates[up] > rates[up - 1]
            assert rates[down] < rates[down - 1]

    with embedded(4) as running:
        asyncio.run(main(running))


def _decided(stage: WatchedRun, why: str) -> bool:
    return any(why in str(each.facts["why"]) for each in stage.told("throttle decided"))
