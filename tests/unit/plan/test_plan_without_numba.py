"""Planning where numba is not installed: the same plans, interpreted, but for prices.

Both take fewer random steps than usual, because the interpreter needs a minute for the usual ones.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from restow.plan.search import solve, tries
from tests.unit.plan.test_plan_search import skewed

ROOT = Path(__file__).parents[3]
STEPS = 1_000

_INTERPRETED = """
import sys
sys.modules["numba"] = None
import numpy as np
np.random.seed(7)
drawn = np.random.get_state()[1].tolist()
from restow.plan.search import solve as searching
from restow.plan.search import tries
from restow.plan.search.compiled import COMPILES
from tests.unit.plan.test_plan_without_numba import STEPS, small_clusters
tries._STEPS_AT_A_TIME = STEPS
sys.modules["restow.plan.search.solve"]._LARGE = int(sys.argv[2])
assert not COMPILES
found = {}
for number, problem in enumerate(small_clusters()):
    solution = searching(problem)
    found[f"holder{number}"], found[f"leader{number}"] = solution.holder, solution.leader
assert np.random.get_state()[1].tolist() == drawn, "the process's own random numbers were touched"
np.savez(sys.argv[1], **found)
"""


def small_clusters() -> list:
    """One that is balanced in one go, one that gives up movers, one that only tabu search changes."""
    drained = skewed(8, 120, seed=3)
    drained.receives[2] = False
    drained.forced[drained.home == 2] = True
    return [skewed(12, 200), drained, skewed(6, 12, racks=3, band=0.2, seed=5)]


def interpreted(found: Path, large: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", _INTERPRETED, str(found), str(large)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def without_numba(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    found = tmp_path_factory.mktemp("found") / "found.npz"
    done = interpreted(found, large=100)
    assert done.returncode == 0, done.stderr
    return found, done.stderr


def test_interpreted_search_finds_what_the_compiled_one_finds(
    without_numba: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tries, "_STEPS_AT_A_TIME", STEPS)
    monkeypatch.setattr(sys.modules["restow.plan.search.solve"], "is_priced", lambda _: False)
    found = np.load(without_numba[0])
    for number, problem in enumerate(small_clusters()):
        solution = solve(problem)
        assert solution.holder.tolist() == found[f"holder{number}"].tolist()
        assert solution.leader.tolist() == found[f"leader{number}"].tolist()


def test_interpreted_search_names_the_extra_when_the_cluster_is_large(
    without_numba: tuple[Path, str],
) -> None:
    assert without_numba[1].splitlines() == ["planning is faster with numba: pip install 'restow[plan]'"] * 2
