"""Plans in simulated runs: the same run for the same seed, and broken promises are found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from restow.execute.throttle import throttling
from restow.sim.run import Scenario, simulate

if TYPE_CHECKING:
    import pytest

RUN = """
import json, logging, sys
from dataclasses import asdict
from restow.sim.run import Scenario, simulate
logging.disable(logging.CRITICAL)
scenario = Scenario(seed=int(sys.argv[1]), duration_s=30, fault_every_s=8, partitions=4, records_per_s=10,
    workloads=("plans",))
print(json.dumps(asdict(simulate(scenario))))
"""


def report_of(seed: int, hash_seed: int) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(seed)], env=environment, capture_output=True, text=True, check=True
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_same_seed_gives_the_same_plans_whatever_the_hash_seed() -> None:
    first, again = report_of(3, 1), report_of(3, 2)
    assert first["trace"] == again["trace"]
    assert first["violations"] == []
    assert any("tool: begun" in event for event in first["last_events"])


def test_run_finds_a_throttle_that_is_not_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = throttling.restoration

    def keep_rates(*given: Any) -> Any:
        back = restore(*given)
        kept = {s: given[2][s] if s.of == "broker" else value for s, value in back.changes.items()}
        return replace(back, changes=kept)

    monkeypatch.setattr(throttling, "restoration", keep_rates)
    scenarios = (Scenario(seed=seed, duration_s=30, faults=(), workloads=("plans",)) for seed in range(10))
    assert any("throttles" in what for scenario in scenarios for what in simulate(scenario).violations)
