"""One plan in many variants."""

from __future__ import annotations

from dataclasses import fields
from math import inf

import pytest

from restow.errors import InvalidInput
from restow.execute.run.options import run_options
from restow.model import Limits, Plan, Snapshot, TopicPartition
from restow.plan.flow.constants import Calibration, Constants
from restow.plan.flow.loads import ClientLoads, PartitionLoad
from restow.plan.pin import Target, plan_from_targets
from restow.rehearse.answer import CannotRehearse
from restow.rehearse.variants import (
    PlanToRehearse,
    Variant,
    VariantRehearsals,
    constants_for,
    variants_of,
)
from tests.unit.plan.clusters import snapshot as snapshot_of

MB = 10**6
START_MS = 1_767_571_200_000


def cluster(partitions: int = 24) -> Snapshot:
    replicas = [(number % 4, (number + 1) % 4) for number in range(partitions)]
    return snapshot_of({"t": replicas}, size=100 * MB)


def plan_to(snapshot: Snapshot, *brokers: int) -> Plan:
    """Return a plan that moves the second replica of every partition to these brokers in turn."""
    targets = [
        Target(partition=name, replicas=(each.replicas[0], brokers[name.partition % len(brokers)]))
        for name, each in snapshot.all_partitions()
    ]
    return plan_from_targets(snapshot, targets, created_ms=1, limits=Limits(moves_in=3, moves_out=2))


def case_of(snapshot: Snapshot, loads: ClientLoads | None = None) -> PlanToRehearse:
    return PlanToRehearse(
        plan=plan_to(snapshot, 4, 5),
        snapshot=snapshot,
        loads=loads or ClientLoads(),
        known=Calibration(),
        flags={},
    )


def variant(throttle: str = "10MB/s", **more: object) -> Variant:
    return Variant(throttle=throttle, start_ms=START_MS, **more)  # type: ignore[arg-type]


def test_every_combination_is_rehearsed_and_the_run_without_a_fault_too() -> None:
    fault = "broker 3 dies at 30%"
    found = variants_of(("10MB/s", "none", "10MB/s"), (1, 2), (fault,), 3)
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 3
    assert {each.what_if for each in found} == {"", fault}


@pytest.mark.parametrize("which", ["--throttles", "--starts"])
def test_empty_lists_are_refused(which: str) -> None:
    throttles, starts = ((), (1,)) if which == "--throttles" else (("none",), ())
    with pytest.raises(InvalidInput, match=which):
        variants_of(throttles, starts, (), 1)


def test_seed_draws_the_same_constants_each_time_and_within_their_range() -> None:
    known = Calibration()
    assert constants_for(known, 0) == known.usual
    assert constants_for(known, 7) == constants_for(known, 7) != constants_for(known, 8)
    for seed in range(1, 50):
        drawn = constants_for(known, seed)
        for name in (each.name for each in fields(Constants) if each.name != "page_cache_bytes"):
            ends = sorted((getattr(known.slow, name), getattr(known.fast, name)))
            assert ends[0] <= getattr(drawn, name) <= ends[1]


def test_variant_takes_the_time_of_a_rehearsal_by_itself() -> None:
    case = case_of(cluster())
    row = VariantRehearsals(case).row(variant())
    alone = case.stage().events(run_options(throttle="10MB/s"), case.known.usual)
    assert row["seconds"] == alone.run.seconds
    assert (row["problems"], row["impact"]) == ([], None)
    assert row["limited_by"].endswith("receives as much as its throttle allows")


def test_variants_do_not_disturb_each_other() -> None:
    case = case_of(cluster())
    rehearsals = VariantRehearsals(case)
    wanted = [variant("10MB/s"), variant("none", seed=3), variant("20MB/s"), variant("10MB/s", seed=3)]
    one_after_the_other = [rehearsals.row(each) for each in (*wanted, *wanted)]
    assert one_after_the_other[:4] == one_after_the_other[4:]
    assert one_after_the_other[:4] == [VariantRehearsals(case).row(each) for each in wanted]


def test_large_plan_in_grains_takes_the_time_of_one_without_within_a_twentieth() -> None:
    case = case_of(cluster(400))
    row = VariantRehearsals(case).row(variant("50MB/s"))
    alone = case.stage().events(run_options(throttle="50MB/s"), case.known.usual, exact_moves=10_000)
    assert row["seconds"] == pytest.approx(alone.run.seconds, rel=0.05)
    assert row["seconds"] != alone.run.seconds


def test_faster_variant_costs_clients_more() -> None:
    snapshot = cluster()
    busy = {name: PartitionLoad(leader_in=1.0, leader_out=20.0 * MB) for name in snapshot.names}
    rehearsals = VariantRehearsals(case_of(snapshot, ClientLoads(by_partition=busy, known=True)))
    slow, fast = rehearsals.row(variant("10MB/s")), rehearsals.row(variant("50MB/s"))
    assert slow["seconds"] > fast["seconds"]
    assert slow["impact"] < fast["impact"]


def test_copy_that_never_ends_is_a_problem_of_the_variant() -> None:
    snapshot = cluster(2)
    written = {TopicPartition("t", 0): PartitionLoad(leader_in=5.0 * MB)}
    rehearsals = VariantRehearsals(case_of(snapshot, ClientLoads(by_partition=written, known=True)))
    row = rehearsals.row(variant("1MB/s"))
    assert (row["seconds"], row["impact"]) == (inf, None)
    assert "never end" in row["problems"][0]


def test_fault_is_rehearsed_by_the_executor_and_its_harm_is_a_problem() -> None:
    rehearsals = VariantRehearsals(case_of(cluster(8)))
    without = rehearsals.row(variant())
    dies = rehearsals.row(variant(what_if="broker 4 dies at 30%"))
    back = rehearsals.row(variant(what_if="broker 4 dies at 30%; broker 4 comes back at 60s"))
    assert without["problems"] == []
    assert dies["seconds"] == inf
    assert dies["problems"]
    assert without["seconds"] < back["seconds"] < inf


def test_what_cannot_be_is_refused_before_anything_is_rehearsed() -> None:
    case = case_of(cluster(8))
    case.check(("10MB/s",), ("broker 3 dies at 30%",))
    with pytest.raises(InvalidInput, match="no broker 77"):
        case.check(("10MB/s",), ("broker 77 dies at 30%",))
    with pytest.raises(InvalidInput):
        case.check(("ten",), ())
    with pytest.raises(InvalidInput, match="up to 300 moves"):
        case_of(cluster(301)).check(("none",), ("broker 3 dies at 30%",))
    moved = snapshot_of({"t": [(2, 3)] * 8}, size=100 * MB)
    drifted = PlanToRehearse(
        plan=case.plan, snapshot=moved, loads=case.loads, known=case.known, flags=case.flags
    )
    with pytest.raises(CannotRehearse, match="not what the plan was made for"):
        drifted.check(("none",), ())
