"""What copying costs clients, and the start at which it costs least."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from restow.cli import run
from restow.errors import InvalidInput
from restow.execute.predict.by_events import run_events
from restow.execute.predict.learn import at_least
from restow.execute.run.options import run_options
from restow.model.load import BYTES_IN, BYTES_OUT, LoadModel, Resource
from restow.model.load_text import dumps
from restow.plan.flow.constants import SLOW, USUAL, Calibration
from restow.plan.flow.loads import client_loads
from restow.rehearse.answer import CannotRehearse
from restow.rehearse.impact import client_impact, impact_by_start
from tests.unit.rehearse.test_rehearse import START_MS, cluster, plan_to, saved, told_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.model import Snapshot

MB = 10**6
QUIET = 26
"""Two in the night from Monday to Tuesday."""


def weekly(snapshot: Snapshot, *quiet: int, written: float = 0.1 * MB, read: float = 5.0 * MB) -> LoadModel:
    """Return loads that are a tenth in these hours of the week."""
    hours = np.ones(168)
    hours[list(quiet)] = 0.1
    into, out = (np.full(len(snapshot.names), each) for each in (written, read))
    return LoadModel(
        cluster_id="here",
        made_ms=0,
        partitions=snapshot.names,
        resources={
            BYTES_IN: Resource(leading=into, following=into, hours={"t": hours}),
            BYTES_OUT: Resource(leading=out, following=out * 0, hours={"t": hours}),
        },
    )


def hour_of(start_ms: int) -> int:
    at = datetime.fromtimestamp(start_ms / 1000, UTC)
    return at.weekday() * 24 + at.hour


def impact_at(throttle: str, start_ms: int, load: LoadModel, snapshot: Snapshot) -> float:
    plan = plan_to(snapshot, 4, 5)
    loads = client_loads(load, snapshot, plan)
    told = run_events(plan, snapshot, run_options(throttle=throttle), USUAL, loads, start_ms=start_ms)
    return client_impact(told.movement, snapshot)


def test_impact_is_what_queues_grow_by_times_what_clients_send() -> None:
    snapshot = cluster(1, size=3000 * MB)
    load = weekly(snapshot, written=30.0 * MB, read=30.0 * MB)
    free = replace(USUAL, round_trip_s=1e-6, throttle_share=1.0, begin_s=0.0, settle_s=0.0, throttling_s=0.0)
    plan = plan_to(snapshot, 4)
    loads = client_loads(load, snapshot, plan)
    told = run_events(plan, snapshot, run_options(throttle="90MB/s"), free, loads, start_ms=START_MS)
    assert told.run.seconds == pytest.approx(3000 / 60)
    # Broker 0 sends 90 MB/s of copies beside 30 MB/s, and can do 300; broker 4 has no clients.
    assert client_impact(told.movement, snapshot) == pytest.approx(
        50 * 30 * MB * (0.4 / 0.6 - 0.1 / 0.9), rel=0.01
    )


def test_impact_is_less_in_quiet_hours_and_at_lower_throttles() -> None:
    snapshot = cluster()
    load = weekly(snapshot, QUIET)
    monday_ms = START_MS - START_MS % 3_600_000 - hour_of(START_MS) * 3_600_000
    busy_ms, quiet_ms = monday_ms, monday_ms + QUIET * 3_600_000
    fast = impact_at("50MB/s", busy_ms, load, snapshot)
    slow = impact_at("30MB/s", busy_ms, load, snapshot)
    quiet = impact_at("50MB/s", quiet_ms, load, snapshot)
    assert 0 < quiet < slow < fast


def test_impact_by_start_equals_that_of_a_run_at_that_hour() -> None:
    snapshot = cluster()
    load = weekly(snapshot, QUIET)
    plan = plan_to(snapshot, 4, 5)
    loads = client_loads(load, snapshot, plan)
    edge_ms = START_MS - START_MS % 3_600_000
    told = run_events(plan, snapshot, run_options(throttle="20MB/s"), USUAL, loads, start_ms=edge_ms)
    by_start = impact_by_start(told.movement, snapshot)
    number = int(np.argmin(by_start))
    assert (hour_of(edge_ms) + number) % 168 == QUIET
    again = impact_at("20MB/s", edge_ms + number * 3_600_000, load, snapshot)
    assert by_start[number] == pytest.approx(again, rel=0.05)


def test_start_auto_finds_the_quiet_hour(tmp_path: Path) -> None:
    snapshot = cluster()
    told = told_of(
        plan_to(snapshot, 4, 5),
        snapshot,
        tmp_path,
        start="auto",
        throttle="20MB/s",
        load=weekly(snapshot, QUIET),
    )
    assert hour_of(told.start_ms) == QUIET
    assert told.impact == pytest.approx(told.starts[0].impact, rel=0.1)
    assert [each.impact for each in told.starts] == sorted(each.impact for each in told.starts)
    assert json.loads(json.dumps(told.document()))["starts"][0]["start_ms"] == told.start_ms


def test_start_auto_with_a_deadline_finds_hour_and_throttle(tmp_path: Path) -> None:
    snapshot = cluster()
    load = weekly(snapshot, QUIET, QUIET + 1)
    plan = plan_to(snapshot, 4, 5)
    told = told_of(plan, snapshot, tmp_path, start="auto", throttle=None, deadline="2h", load=load)
    assert hour_of(told.start_ms) == QUIET
    assert told.seconds.p90 <= 7200
    assert told.holds
    with pytest.raises(CannotRehearse, match="no start within the next week") as refused:
        told_of(plan, snapshot, tmp_path, start="auto", throttle=None, deadline="1s", load=load)
    told = told_of(plan, snapshot, tmp_path, throttle="none", load=load)
    takes = re.search(r"take up to ([\d,]+) s without any throttle", str(refused.value))
    assert takes is not None
    assert float(takes[1].replace(",", "")) == pytest.approx(told.seconds.p90, rel=0.2)


def test_start_auto_without_loads_by_hour_is_refused(tmp_path: Path) -> None:
    snapshot = cluster()
    with pytest.raises(InvalidInput, match="--start auto needs a load model"):
        told_of(plan_to(snapshot, 4, 5), snapshot, tmp_path, start="auto")


def test_samples_raise_the_guess_of_what_a_broker_can_do(tmp_path: Path) -> None:
    snapshot = cluster(4)
    load = weekly(snapshot)
    seen = replace(load, resources={BYTES_IN: replace(load.resources[BYTES_IN], reached=400.0 * MB)})
    told = told_of(plan_to(snapshot, 4), snapshot, tmp_path, throttle="none", load=seen)
    assert told.known["broker_rate"] == "samples of the pipeline, in which a broker carried 400 MB/s"
    assert "broker_rate" not in told.guessed
    known = at_least(Calibration(), seen)
    rates = [each.broker_rate for each in (known.slow, known.usual, known.fast)]
    assert rates == [400.0 * MB, 400.0 * MB, 1000.0 * MB]
    little = replace(
        load, resources={BYTES_IN: replace(load.resources[BYTES_IN], reached=SLOW.broker_rate / 2)}
    )
    assert at_least(Calibration(), little) == Calibration()
    by_runs = Calibration().know("broker_rate", (1.0, 2.0, 3.0), "2 earlier runs")
    assert at_least(by_runs, seen) == by_runs


def test_command_says_which_starts_it_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = cluster()
    (tmp_path / "load.json").write_text(dumps(weekly(snapshot, QUIET)))
    given = saved(tmp_path, snapshot, plan_to(snapshot, 4, 5))
    load = ["--load", str(tmp_path / "load.json")]
    assert run([*given, *load, "--throttle", "20MB/s", "--start", "auto"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("impact on clients") == 5
    assert "bytes of clients that wait behind copies" in printed
