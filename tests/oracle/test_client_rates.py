"""How long a client is throttled for what it has used, beside Kafka's own Rate and its samples."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from restow.cluster.quotas.rate import SampledRate
from tests.often import of_many
from tests.oracle.cases import CASES
from tests.seeds import AGAIN, seeded

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm
STEPS_EACH = 30


@pytest.mark.parametrize("case", range(of_many(CASES, often=10)))
def test_clients_are_throttled_for_as_long_as_by_kafka(gateway: JavaGateway, case: int) -> None:
    draw = Random(seeded(case))
    samples, sample_s = draw.choice(((11, 1), (3, 2), (2, 1)))
    jvm = gateway.jvm
    config = jvm.org.apache.kafka.common.metrics.MetricConfig()
    config.samples(samples).timeWindow(sample_s, jvm.java.util.concurrent.TimeUnit.SECONDS)
    theirs, ours = jvm.org.apache.kafka.common.metrics.stats.Rate(), SampledRate(samples, float(sample_s))
    limit, now_ms = draw.choice((10.0, 1000.0)), 1_000_000
    for _ in range(STEPS_EACH):
        now_ms += draw.choice((0, 125, 250, 875, 1000, 1125, 5_000, 30_000))  # exact in binary, as seconds
        amount = float(draw.choice((0, 1, 500, 3_000, 100_000)))
        theirs.record(config, amount, now_ms)
        ours.note(amount, now_ms / 1000)
        rate = theirs.measure(config, now_ms)
        window_ms = theirs.windowSize(config, now_ms)
        expected_s = max((rate - limit) / limit * window_ms / 1000, 0.0)
        found_s = ours.throttle_s(limit, now_ms / 1000)
        assert found_s == pytest.approx(expected_s, rel=1e-6, abs=1e-6), (now_ms, AGAIN)
