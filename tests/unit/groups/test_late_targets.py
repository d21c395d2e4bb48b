"""Groups of the protocol `consumer` whose next target waits for its interval."""

from __future__ import annotations

from tests.clock import HandClock
from tests.unit.groups.test_consumer_groups import Bench, numbers
from tests.unit.groups.workbench import restarted, run


def test_next_target_waits_for_its_interval_also_at_the_next_coordinator() -> None:
    async def test() -> None:
        async with Bench(consumer_assignment_interval_ms=1_000) as bench:
            await bench.join("a")
            assert (numbers(reply := await bench.join("b")), reply.epoch) == ([], 2)
            await bench.clock.advance(0.5)
            await restarted(bench)
            assert (await bench.beat("a", 2)).assignment is None
            described = await bench.described()
            assert (described.epoch, described.assignment_epoch) == (3, 2)
            await bench.clock.advance(0.5)
            assert (await bench.beat("b", 2)).epoch == 3
            assert numbers(await bench.beat("a", 2)) == [0, 1]

    run(test)


def test_target_of_a_coordinator_whose_clock_was_ahead_does_not_hold_up_the_next() -> None:
    async def test() -> None:
        for interval_ms in (0, 1_000):
            async with Bench(consumer_assignment_interval_ms=interval_ms) as bench:
                await bench.join("a")
                other = Bench(consumer_assignment_interval_ms=interval_ms, journal=bench.journal)
                other.topics = bench.topics
                other.clock = HandClock(1_600_000_000.0)
                other.coordinator = other.another()
                async with other:
                    assert (await other.join("b")).epoch == 3

    run(test)


def test_member_that_waits_for_partitions_writes_nothing_new() -> None:
    async def test() -> None:
        async with Bench() as bench:
            await bench.join("a")
            await bench.join("b")
            await bench.beat("b", 3)
            written = sum(bench.journal.batches)
            for _ in range(3):
                assert (await bench.beat("b", 3)).assignment is None
            assert sum(bench.journal.batches) == written

    run(test)
