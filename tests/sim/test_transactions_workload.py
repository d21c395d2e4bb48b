"""Transactions in simulated runs: atomic, isolated and fenced under faults, and broken promises are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.broker.txn_markers import LeaderMarkers
from restow.cluster.groups.stored_offsets import StoredOffsets
from restow.cluster.log.log import PartitionLog
from restow.cluster.transactions.transaction import Transaction
from restow.sim.run import Scenario, simulate
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    Patch = pytest.MonkeyPatch

QUIET_S = 1000.0


def run(seed: int, *others: str, every_s: float = 6.0, duration_s: float = 40.0) -> tuple[str, ...]:
    report = simulate(
        Scenario(
            seed=seed,
            duration_s=duration_s,
            fault_every_s=every_s,
            workloads=("transactions", *others),
        )
    )
    assert report.acked > 0
    return report.violations


def test_transactions_keep_their_promises_while_brokers_fail_and_partitions_move() -> None:
    assert run(18, "reassign") == ()


def test_leader_notices_that_the_link_to_a_coordinator_is_dead() -> None:
    """Producers give up before the leader's question does; the leader must still replace its connection."""
    assert run(15, "reassign") == ()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(200, 240))
def test_transactions_keep_their_promises_under_all_faults(seed: int) -> None:
    assert run(seed, "reassign", "elections", "produce", every_s=3.0) == ()


def open_transactions_are_stable(patch: Patch) -> None:
    patch.setattr(PartitionLog, "last_stable_offset", property(lambda self: self.high_watermark))


def aborted_transactions_are_not_told(patch: Patch) -> None:
    patch.setattr(PartitionLog, "aborted_with", lambda self, offset, batches: [])


def producers_are_not_fenced(patch: Patch) -> None:
    patch.setattr(Transaction, "check_producer", lambda self, producer: None)


def last_partition_gets_no_marker(patch: Patch) -> None:
    send = LeaderMarkers.send

    async def but_one(self: Any, end: Any, partitions: Any) -> Any:
        first, *others = sorted(partitions)
        return {**await send(self, end, [first]), **dict.fromkeys(others, ErrorCode.NONE)}

    patch.setattr(LeaderMarkers, "send", but_one)


def aborted_offsets_count(patch: Patch) -> None:
    end = StoredOffsets.end_transaction
    patch.setattr(
        StoredOffsets,
        "end_transaction",
        lambda self, producer_id, commits: end(self, producer_id, commits=True),
    )


@pytest.mark.parametrize(
    ("defect", "found"),
    [
        (open_transactions_are_stable, "which is open"),
        (aborted_transactions_are_not_told, "which is aborted"),
        (producers_are_not_fenced, "committed after another had begun"),
        (last_partition_gets_no_marker, "still at work"),
        (aborted_offsets_count, "has offset"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_checkers_find_a_defect(
    monkeypatch: pytest.MonkeyPatch, defect: Callable[[Patch], None], found: str
) -> None:
    defect(monkeypatch)
    violations: list[str] = []
    for seed in (1, 2, 3):
        violations += run(seed, every_s=QUIET_S, duration_s=25)
        if any(found in each for each in violations):
            break
    assert any(found in each for each in violations), violations
