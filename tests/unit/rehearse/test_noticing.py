"""Who would notice a run: topics whose leaders move, brokers hour by hour, and bytes read from disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from restow.model.load import BYTES_IN, BYTES_OUT, WEEK_HOURS, LoadModel, Resource
from restow.plan.pin import Target, plan_from_targets
from restow.rehearse.rehearsing import rehearse
from tests.unit.plan.clusters import snapshot as snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.model import Plan, Snapshot
    from restow.rehearse.answer import Rehearsal

MB = 10**6


def cluster() -> Snapshot:
    """Return two topics on brokers 0 and 1: 4 partitions and 1, of 100 MB each."""
    return snapshot_of(
        {"busy": [(0, 1)] * 4, "idle": [(0, 1)]}, brokers=range(3), size=100 * MB, total=10**12
    )


def plan_to_2(snapshot: Snapshot) -> Plan:
    """Return a plan that moves the first replicas, which lead, to broker 2."""
    targets = [Target(partition=name, replicas=(2, 1)) for name in snapshot.names]
    return plan_from_targets(snapshot, targets, created_ms=1)


def load_of(snapshot: Snapshot) -> LoadModel:
    """Return a load of 2 kB/s written and 4 kB/s read per partition of `busy`, twice that at even hours."""
    busy = np.array([float(name.topic == "busy") for name in snapshot.names])
    hours = {"busy": np.array([2.0, 0.0] * (WEEK_HOURS // 2))}
    written = Resource(leading=2_000 * busy, following=2_000 * busy, hours=hours)
    read = Resource(leading=4_000 * busy, following=0 * busy, hours=hours)
    return LoadModel(
        cluster_id=snapshot.cluster_id,
        made_ms=1,
        partitions=snapshot.names,
        resources={BYTES_IN: written, BYTES_OUT: read},
    )


def told_of(tmp_path: Path, load: LoadModel | None = None, **more: str) -> Rehearsal:
    snapshot = cluster()
    given = {"throttle": "10MB/s", **more}
    return rehearse(plan_to_2(snapshot), snapshot, load, journal=tmp_path, **given)  # type: ignore[arg-type]


def test_topics_whose_leaders_move_come_with_the_rates_of_their_clients(tmp_path: Path) -> None:
    busy, idle = told_of(tmp_path, load_of(cluster())).topics
    assert (busy.topic, busy.leaders_moved, busy.written, busy.read) == ("busy", 4, 8_000, 16_000)
    assert (idle.topic, idle.leaders_moved, idle.written, idle.read) == ("idle", 1, 0, 0)
    without = told_of(tmp_path).topics
    assert {(each.topic, each.written) for each in without} == {("busy", None), ("idle", None)}


def test_hours_of_a_broker_have_what_copies_add_to_its_clients(tmp_path: Path) -> None:
    """500 MB at 100 kB/s take more than an hour; the hours of the week are even and odd in turn."""
    told = told_of(tmp_path, load_of(cluster()), throttle="100kB/s", start="2026-11-20T10:30")
    sender = next(each for each in told.brokers if each.broker == 0)
    assert [hour.clients_out for hour in sender.hours][:2] in ([0.0, 32_000.0], [32_000.0, 0.0])
    assert all(each.copied_out == pytest.approx(100_000, rel=0.05) for each in sender.hours[:-1])
    assert np.diff([each.begins_ms for each in sender.hours])[:1].tolist() == [30 * 60_000]
    sent = [each.copied_out for each in sender.hours]
    assert all(rate > 0 for rate in sent)


def test_bytes_read_from_disk_are_those_beyond_the_page_cache(tmp_path: Path) -> None:
    """Broker 0 holds and sends 500 MB; of 100 MB of memory each partition gets its share."""
    assert told_of(tmp_path).read_from_disk_bytes == 500 * MB
    assert told_of(tmp_path, page_cache="100MB").read_from_disk_bytes == 400 * MB
    assert told_of(tmp_path, page_cache="10GB").read_from_disk_bytes == 0


def test_page_cache_holds_what_was_written_last(tmp_path: Path) -> None:
    """Nothing is written to `idle`, so all of it is read from disk; `busy` is in memory."""
    told = told_of(tmp_path, load_of(cluster()), page_cache="10GB")
    assert told.read_from_disk_bytes == 100 * MB


def test_answer_says_that_brokers_choose_log_dirs(tmp_path: Path) -> None:
    snapshot = snapshot_of({"t": [(0, 1)] * 3}, brokers=range(3), dirs=("/d0", "/d1"))
    named = [Target(partition=name, replicas=(0, 2), log_dirs=("any", "/d0")) for name in snapshot.names]
    chosen = [Target(partition=name, replicas=(0, 2)) for name in snapshot.names]
    notes = []
    for targets in (named, chosen):
        plan = plan_from_targets(snapshot, targets, created_ms=1)
        notes.append(" ".join(rehearse(plan, snapshot, throttle="10MB/s", journal=tmp_path).notes))
    assert "brokers choose the log dirs" not in notes[0]
    assert "brokers choose the log dirs of 3 replicas" in notes[1]
