"""Runs on Apache Kafka 4.3.1 beside their rehearsals: the runs of `benchmarks.rehearse`, a few of them."""

from __future__ import annotations

import gc
import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from benchmarks.rehearse_runs import Case, cluster_of
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.rehearse_runs import Bench

pytestmark = [pytest.mark.apache, pytest.mark.full]

STALL_S = 12
"""A busy machine may stand still: a run may end later than foretold by this, but not earlier."""
CASES = [
    Case(name="10 MB/s", rate_mb=10),
    Case(name="8 MB/s, half within brokers", rate_mb=8, within=0.5),
    Case(name="6 MB/s, 2 MB/s produced", rate_mb=6, produce_mb=2),
    Case(name="8 MB/s, the drained broker dies", rate_mb=8, shares=(1.0, 0.7), loses=True),
]


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage: kafka-python leaves sockets to it, and its log keeps them open."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with ExitStack() as stack:
        with needs_kafka():
            started = stack.enter_context(cluster_of(tmp_path_factory.mktemp("rehearsed"), "4.3.1"))
        yield started


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_takes_the_time_and_the_disk_of_its_rehearsal(bench: Bench, case: Case) -> None:
    result = bench.run(case)
    assert result.ending == "done"
    assert 0.9 * result.predicted_s <= result.actual_s <= 1.1 * result.predicted_s + STALL_S
    assert case.loses or result.peaks
    for told, was in result.peaks.values():
        assert told == pytest.approx(was, rel=0.02)
