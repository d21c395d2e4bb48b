"""Consumer groups in simulated runs: nothing is missed, and broken promises are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.groups.consumer import group as consumer_group
from restow.cluster.groups.group import ClassicGroup
from restow.sim.group_record import EpochRecord, GroupRecord
from restow.sim.run import Scenario, simulate
from tests.often import often

if TYPE_CHECKING:
    from restow.cluster.groups.requests import CommitRequest


def test_record_finds_two_owners_in_one_generation() -> None:
    record = GroupRecord("readers")
    record.synced("a", 1, [0, 1])
    record.synced("b", 2, [1])
    assert record.broken == []
    record.synced("c", 2, [1])
    assert "two owners" in record.broken[0]


def test_record_of_epochs_finds_two_owners_only_if_both_are_members() -> None:
    record = EpochRecord("mixed")
    record.synced("a", 2, [0, 1])
    sent = record.doubts("a")
    record.synced("b", 2, [0, 1])
    record.stayed("a", sent)
    assert record.broken == [], "that heartbeat may have been accepted before"
    record.stayed("b", record.doubts("b"))
    assert record.broken == []
    record.stayed("a", record.doubts("a"))
    assert ["two owners in epoch 2" in each for each in record.broken] == [True, True]


def test_record_of_epochs_lets_a_former_owner_begin_anew() -> None:
    record = EpochRecord("mixed")
    record.synced("a", 2, [0])
    record.synced("b", 2, [0])
    record.joins("a")
    record.stayed("a", record.doubts("a"))
    assert record.broken == []


def test_record_finds_an_accepted_commit_of_an_old_generation() -> None:
    record = GroupRecord("readers")
    record.synced("a", 2, [0])
    record.accepted({0: 5}, generation=2, newest_when_sent=2)
    assert record.broken == []
    record.accepted({0: 6}, generation=1, newest_when_sent=2)
    assert "generation 1" in record.broken[0]


def test_record_finds_an_accepted_heartbeat_of_a_generation_that_this_broker_has_ended() -> None:
    record = GroupRecord("readers")
    record.synced("a", 2, [0], coordinator=1)
    record.heard(2, 1, record.told_by(2))
    assert record.broken == []
    record.heard(1, 1, record.told_by(1))
    assert "heartbeat of generation 1" in record.broken[0]


def test_record_finds_committed_offsets_that_go_back() -> None:
    record = GroupRecord("readers")
    record.accepted({0: 5}, generation=1, newest_when_sent=1)
    record.unanswered({0: 3})
    record.fetched(0, 3, committed_when_asked=5)
    assert record.broken == []
    record.accepted({0: 5}, generation=1, newest_when_sent=1)
    record.fetched(0, 4, committed_when_asked=5)
    assert "went back from 5 to 4" in record.broken[0]


def test_groups_read_everything_while_brokers_and_members_fail() -> None:
    report = simulate(Scenario(seed=4, duration_s=30, fault_every_s=8, workloads=("produce", "groups")))
    assert report.violations == ()
    assert report.acked > 0


def test_run_finds_a_coordinator_that_accepts_commits_of_old_generations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = ClassicGroup.commit

    def accept(group: ClassicGroup, request: CommitRequest, now_ms: int) -> Any:
        return check(group, replace(request, generation=group.generation), now_ms)

    monkeypatch.setattr(ClassicGroup, "commit", accept)
    scenarios = (
        Scenario(seed=seed, faults=(), records_per_s=10, workloads=("produce", "groups")) for seed in range(5)
    )
    found = (what for scenario in scenarios for what in simulate(scenario).violations)
    assert any("accepted a commit of generation" in what for what in found)


@pytest.mark.parametrize("seed", often(range(20, 30), 23))
def test_groups_of_both_protocols_read_everything_while_brokers_and_members_fail(seed: int) -> None:
    scenario = Scenario(seed=seed, duration_s=30, fault_every_s=8, workloads=("produce", "mixed-groups"))
    report = simulate(scenario)
    assert report.violations == ()
    assert report.acked > 0


def test_members_that_get_what_others_still_hold_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that lets members keep what is not in their target any more."""

    def kept(member: Any, *, target_epoch: int, target: Any, **_: Any) -> Any:
        held = dict.fromkeys({*member.assigned, *target}, target_epoch)
        return replace(member, epoch=target_epoch, previous_epoch=member.epoch, assigned=held)

    monkeypatch.setattr(consumer_group, "reconciled", kept)
    scenario = Scenario(seed=3, duration_s=20, faults=(), workloads=("produce", "mixed-groups"))
    found = [each for seed in (1, 3) for each in simulate(replace(scenario, seed=seed)).violations]
    assert any("two owners" in each for each in map(str, found))
