"""Runs that once failed, by the defect that they found. They must pass now."""

from __future__ import annotations

import pytest

from restow.sim.run import Scenario, simulate

FAULTS = (
    "kill",
    "stop",
    "halt",
    "controller-kill",
    "controller-kill-at-write",
    "controller-deposed",
    "power-loss",
    "isolate",
    "isolate-in",
    "isolate-out",
    "isolate-clients",
    "slow-link",
    "lossy-link",
    "reset",
    "half-open",
    "silent",
    "late-data",
    "store-cut",
    "store-slow",
    "store-answers-lost",
    "session-expiry",
    "disk-full",
    "disk-failed",
    "disk-gone",
    "disk-slow",
    "clock",
)
"""Those that the runs drew from. Later ones must not change them."""
FOUND = {
    "a broker obeyed requests for its earlier life before it was registered": Scenario(
        seed=33, workloads=("produce", "reassign", "topics", "configs", "elections")
    ),
    "a broker that had just started knew no topic, so throttles counted as gone": Scenario(
        seed=3038, partitions=6, records_per_s=20, workloads=("produce", "plans"), fault_every_s=8.0
    ),
    "a broker had not heard of a cancelled move, so the order of replicas stayed": Scenario(
        seed=3007, partitions=6, records_per_s=20, workloads=("produce", "plans", "topics"), fault_every_s=8.0
    ),
    "a change of order that had never reached the controller counted as arrived": Scenario(
        seed=20327, workloads=("produce", "configs", "elections", "plans", "topics"), faults=FAULTS
    ),
    "a cancel that was killed twice forgot that Kafka had left another order": Scenario(
        seed=20227, workloads=("produce", "configs", "elections", "groups", "plans", "topics"), faults=FAULTS
    ),
    "old metadata hid that a move had arrived, so it counted as cancelled": Scenario(
        seed=20775, workloads=("produce", "configs", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a run dropped a move because of old metadata, and never recorded that it arrived": Scenario(
        seed=20765, workloads=("produce", "configs", "elections", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a fetch of an earlier session came late, and its follower never came back into the ISR": Scenario(
        seed=20160, workloads=("produce", "elections", "groups", "reassign"), faults=FAULTS
    ),
    "an undo took metadata from before the election of a controller for an undone run": Scenario(
        seed=20077, workloads=("produce", "configs", "plans", "topics"), faults=FAULTS
    ),
    "a run counted its moves for leaders of before, so one broker sent too many replicas": Scenario(
        seed=20584, workloads=("produce", "configs", "elections", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a resumed run counted its moves for a leader from before a broker's death": Scenario(
        seed=20628, workloads=("produce", "configs", "groups", "plans"), faults=FAULTS
    ),
    "a run gave up the second step of a move, and never recorded that it arrived": Scenario(
        seed=20962, workloads=("produce", "elections", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a cancelled change of order was not sent back, because old metadata hid that it had arrived": Scenario(
        seed=30138, workloads=("produce", "configs", "elections", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a LeaderAndIsr that arrived late made a deleted replica anew, and its log stayed": Scenario(
        seed=5078, workloads=("produce", "elections", "groups", "reassign", "topics"), faults=FAULTS
    ),
    "a broker that had missed a deletion told of the topic for ever, under the next controller": Scenario(
        seed=8000088, workloads=("produce", "configs", "groups", "plans", "topics"), faults=FAULTS
    ),
    "a run was held to a leader of whom no broker had told it": Scenario(
        seed=8000040, workloads=("produce", "groups", "plans"), faults=FAULTS
    ),
    "a run was held to the targets of a topic that was being deleted, of which no broker tells": Scenario(
        seed=8000170, workloads=("produce", "groups", "plans", "topics"), faults=FAULTS
    ),
}


@pytest.mark.parametrize("scenario", FOUND.values(), ids=FOUND)
def test_run_that_found_a_defect_passes_now(scenario: Scenario) -> None:
    assert simulate(scenario).violations == ()
