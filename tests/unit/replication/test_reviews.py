"""ISR checks run at the time of each partition, in whatever order they were added."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from restow.cluster.replication.isr import IsrReviews
from tests.clock import HandClock
from tests.unit.replication.replicas import run

if TYPE_CHECKING:
    from restow.cluster.replication.partition import HostedPartition


class Looked:
    """A partition that records its checks."""

    def __init__(self, name: str, clock: HandClock, log: list[tuple[str, float]]) -> None:
        self._name = name
        self._clock = clock
        self._log = log

    def review_isr(self) -> None:
        self._log.append((self._name, self._clock.monotonic_s()))


@pytest.mark.parametrize("order", ["abc", "cba", "bca", "cab"])
def test_each_partition_is_reviewed_at_its_own_time(order: str) -> None:
    async def scenario() -> None:
        clock = HandClock()
        reviews = IsrReviews(clock)
        log: list[tuple[str, float]] = []
        began_s = clock.monotonic_s()
        due = {"a": began_s + 1, "b": began_s + 5, "c": began_s + 9}
        for name in order:
            reviews.add(cast("HostedPartition", Looked(name, clock, log)), due[name])
        for _ in range(20):
            await clock.advance(0.5)
        assert log == [(name, due[name]) for name in "abc"]
        assert len(reviews) == 0
        assert clock.waiting == 0

    run(scenario())


def test_nothing_is_reviewed_after_close() -> None:
    async def scenario() -> None:
        clock = HandClock()
        reviews = IsrReviews(clock)
        log: list[tuple[str, float]] = []
        reviews.add(cast("HostedPartition", Looked("a", clock, log)), clock.monotonic_s() + 1)
        reviews.close()
        await clock.advance(5)
        assert log == []
        assert clock.waiting == 0

    run(scenario())
