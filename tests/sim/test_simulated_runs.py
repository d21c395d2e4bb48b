"""Whole runs in virtual time: repeatable by seed, nothing lost, and defects are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import restow
from restow.cluster.replication import partition
from restow.sim.run import Scenario, simulate
from tests.often import often

RUN = """
import json, sys
from dataclasses import asdict
from restow.sim.run import Scenario, simulate
report = simulate(Scenario(seed=int(sys.argv[1]), duration_s=40, fault_every_s=8, partitions=10))
print(json.dumps(asdict(report)))
"""


def report_of(seed: int, hash_seed: int, python: str = sys.executable) -> dict[str, Any]:
    source = str(Path(restow.__file__).parents[1])
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": source}
    done = subprocess.run(
        [python, "-c", RUN, str(seed)], env=environment, capture_output=True, text=True, check=True
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize("seed", often([1, 6, 11], 6))
def test_same_seed_gives_the_same_run_whatever_the_hash_seed(seed: int) -> None:
    first, again = report_of(seed, 1), report_of(seed, 2)
    assert first["trace"] == again["trace"]
    assert first["steps"] == again["steps"] > 1_000
    assert first["faults"] > 0
    assert first["acked"] > 0
    assert (first["lost"], first["violations"]) == (0, [])


def test_other_seed_gives_another_run() -> None:
    assert report_of(1, 1)["trace"] != report_of(2, 1)["trace"]


def test_run_finds_high_watermark_that_moves_too_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition, "smallest_end", lambda members, followers, leader_end: leader_end)
    scenarios = (Scenario(seed=seed, fault_every_s=8, partitions=10) for seed in range(6, 60))
    assert any(simulate(scenario).lost for scenario in scenarios)
