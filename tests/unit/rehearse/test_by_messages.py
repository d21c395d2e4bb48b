"""Rehearsals message by message: they agree with the flow model on small plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.errors import InvalidInput
from restow.model import Limits, TopicPartition
from restow.plan.flow.constants import Calibration
from restow.plan.pin import Target, plan_from_targets
from restow.rehearse.rehearsing import rehearse
from tests.unit.plan.clusters import snapshot as snapshot_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.model import Plan, Snapshot
    from restow.rehearse.answer import Rehearsal

MB = 10**6
SIZES = [60, 10, 35, 20, 50, 5, 25, 40]


def snapshot() -> Snapshot:
    """Return four brokers with two log dirs each. Eight partitions of unequal size are on the first two."""
    one = [
        snapshot_of({f"t{n}": [(n % 2, (n + 1) % 2)]}, brokers=range(4), size=size * MB, dirs=("/a", "/b"))
        for n, size in enumerate(SIZES)
    ]
    return replace(one[0], topics=tuple(each.topics[0] for each in one))


def to_unequal_receivers(before: Snapshot, limits: Limits) -> Plan:
    """Return a plan with most bytes to broker 2 and the rest to broker 3."""
    targets = [
        Target(
            partition=name, replicas=(each.replicas[0], 3 if number % 3 == 1 else 2), log_dirs=("any", "/b")
        )
        for number, (name, each) in enumerate(before.all_partitions())
    ]
    return plan_from_targets(before, targets, created_ms=1, limits=limits)


def between_and_within(before: Snapshot, limits: Limits) -> Plan:
    """Return a plan that moves half of the partitions away, and half to another log dir of their broker."""
    targets = [
        Target(partition=name, replicas=(each.replicas[0], 2), log_dirs=("any", "/a"))
        if number % 2
        else Target(partition=name, replicas=each.replicas, log_dirs=("/b", "any"))
        for number, (name, each) in enumerate(before.all_partitions())
    ]
    return plan_from_targets(before, targets, created_ms=1, limits=limits)


def both(plan: Plan, before: Snapshot, throttle: str) -> tuple[Rehearsal, Rehearsal]:
    """Rehearse in both ways. Simulated brokers copy between log dirs at all of the throttle."""
    known = Calibration().know("dir_share", (1.0, 1.0, 1.0), "the simulated cluster")
    return (
        rehearse(plan, before, throttle=throttle, calibration=known),
        rehearse(plan, before, throttle=throttle, calibration=known, exact=True),
    )


def order(told: Rehearsal) -> list[TopicPartition]:
    return [each.step.partition for each in told.steps]


@pytest.mark.parametrize(
    ("limits", "throttle"),
    [(Limits(), "4MB/s"), (Limits(moves_in=2), "8MB/s"), (Limits(moves_in=1, moves_out=1), "3MB/s")],
    ids=["all at once", "two at a time", "one at a time"],
)
def test_flow_and_message_level_agree_on_unequal_receivers(limits: Limits, throttle: str) -> None:
    before = snapshot()
    flow, messages = both(to_unequal_receivers(before, limits), before, throttle)
    assert (flow.by, messages.by) == ("executor", "messages")
    assert order(messages) == order(flow)
    assert messages.seconds.p50 == pytest.approx(flow.seconds.p50, rel=0.05)


def test_flow_and_message_level_agree_on_moves_between_and_within_brokers() -> None:
    before = snapshot()
    flow, messages = both(between_and_within(before, Limits(moves_in=2)), before, "5MB/s")
    assert order(messages) == order(flow)
    assert messages.seconds.p50 == pytest.approx(flow.seconds.p50, rel=0.05)


@pytest.mark.parametrize("throttle", ["none", "auto", "5MB/s,22-06=9MB/s"])
def test_message_level_refuses_a_throttle_that_is_not_one_rate(tmp_path: Path, throttle: str) -> None:
    before = snapshot()
    plan = to_unequal_receivers(before, Limits())
    with pytest.raises(InvalidInput, match="--exact"):
        rehearse(plan, before, throttle=throttle, journal=tmp_path, exact=True)


def test_message_level_refuses_faults(tmp_path: Path) -> None:
    before = snapshot()
    plan, fault = to_unequal_receivers(before, Limits()), "broker 2 dies at 30%"
    with pytest.raises(InvalidInput, match="--exact"):
        rehearse(plan, before, throttle="5MB/s", what_if=[fault], journal=tmp_path, exact=True)
