"""Runs without a throttle: each learns from the journals of those before it, in virtual time.

The cluster is that of the times left: it knows nothing of the flow model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.execute.predict.learn import calibrate
from restow.execute.run.options import run_options
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import plan_for
from tests.unit.execute.test_time_left import Run, cluster

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from restow.execute.progress.outcome import RunOutcome
    from tests.unit.execute.test_time_left import ThrottledAdmin

FREE = run_options(throttle="none")


def moved(admin: ThrottledAdmin, tmp_path: Path, topic: str, *ways: Sequence[int]) -> tuple[Run, RunOutcome]:
    """Move partitions of 40 MB without a throttle, each from its leader to another broker."""
    admin.add(topic, [(leader,) for leader, _ in ways], size=40 * MB)
    run = Run(tmp_path, admin)
    return run, run.execute(plan_for(run.stage, [(to,) for _, to in ways], topic), FREE)


def error_of(outcome: RunOutcome) -> float:
    assert outcome.summary.predicted_s is not None
    return outcome.summary.seconds / outcome.summary.predicted_s - 1


def test_brokers_that_share_a_rate_are_predicted_by_it(tmp_path: Path) -> None:
    """One receiver gets 20 MB/s, and several get no more together."""
    admin = cluster(together=20 * MB)
    moved(admin, tmp_path, "alone", (1, 4), (2, 4), (3, 4))
    _, of_two = moved(admin, tmp_path, "two", (1, 4), (2, 5), (3, 4), (1, 5))
    assert abs(error_of(of_two)) > 0.5, "nothing has shown it yet"
    known = calibrate(str(tmp_path), "fake").usual
    assert (known.broker_rate, known.total_rate) == pytest.approx((20 * MB, 20 * MB), rel=0.1)
    ways = [(n % 3 + 1, n % 3 + 4) for n in range(12)]
    run, of_three = moved(admin, tmp_path, "three", *ways)
    assert error_of(of_three) == pytest.approx(0, abs=0.1)
    assert run.wrong() == []
    _, of_one = moved(admin, tmp_path, "one", *[(n % 3 + 1, 5) for n in range(8)])
    assert error_of(of_one) == pytest.approx(0, abs=0.1)


def test_drained_broker_shows_what_others_can_receive(tmp_path: Path) -> None:
    """It sends 20 MB/s to three receivers; then one of them receives from three senders."""
    admin = cluster()
    moved(admin, tmp_path, "drained", *[(1, 4 + n % 3) for n in range(6)])
    _, outcome = moved(admin, tmp_path, "gathered", *[(n % 3 + 1, 4) for n in range(6)])
    assert error_of(outcome) == pytest.approx(0, abs=0.1)
