"""What is refused before the first change, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.execute.start import NotNow
from restow.model import Move, Plan, TopicPartition
from restow.model.permissions import Permissions
from tests.unit.execute.stage import make_stage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.execute.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return make_stage(tmp_path)


def plan(after: tuple[int, ...] = (3, 2), size_bytes: int = 1) -> Plan:
    move = Move(partition=TopicPartition("t", 0), before=(1, 2), after=after, size_bytes=size_bytes)
    return Plan(cluster_id="fake", created_ms=0, moves=(move,))


def refused(stage: Stage, asked: Plan, says: str) -> None:
    with pytest.raises(NotNow, match=says):
        stage.execute(asked)
    assert stage.admin.calls == []
    assert stage.admin.set_ == {}
    assert stage.events == []


def test_a_missing_permission_is_named(stage: Stage) -> None:
    stage.admin.allowed = Permissions(cluster=frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}))
    refused(stage, plan(), r"permissions: 1 missing ACL: ALTER on the cluster")


def test_a_target_that_is_down(stage: Stage) -> None:
    stage.admin.brokers.discard(3)
    refused(stage, plan(), "brokers alive: 1 broker: 3")


def test_no_room(stage: Stage) -> None:
    refused(stage, plan(size_bytes=10**15), "free space: 1 broker: broker 3")


def test_what_is_not_told_does_not_stop_anybody(stage: Stage) -> None:
    assert stage.admin.allowed.cluster is None
    assert stage.execute(plan()).is_good
