"""Simulated runs find deliberate defects, each within 1,000 seeds."""

from __future__ import annotations

import pytest

from tests.sim.controller_defects import CONTROLLER
from tests.sim.defects import MOST_SEEDS, Defect, look_for, violations_of
from tests.sim.executor_defects import EXECUTOR
from tests.sim.group_defects import GROUPS
from tests.sim.replication_defects import REPLICATION

ALL_DEFECTS = {**REPLICATION.all, **CONTROLLER.all, **GROUPS.all, **EXECUTOR.all}
QUICK = ("high_watermark_too_early", "commit_of_an_old_generation_accepted", "deleted_replica_leaves_its_log")


def _marked(defect: Defect) -> object:
    marks = () if defect.name in QUICK else (pytest.mark.full,)
    return pytest.param(defect, id=defect.name, marks=marks)


@pytest.mark.parametrize("defect", [_marked(each) for each in ALL_DEFECTS.values()])
def test_deliberate_defect_is_found(defect: Defect) -> None:
    finding = look_for(defect)
    assert finding is not None, f"{MOST_SEEDS} seeds did not find it: {defect.sentence}"
    assert violations_of(defect, finding.seeds - 1) == [], "the sound product shows it too"
    print(f"{defect.name}: {finding.seeds} seeds, {finding.violation}")  # noqa: T201  shown with -s
