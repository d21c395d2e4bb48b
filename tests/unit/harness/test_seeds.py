"""Random cases are the same in every run, unless a seed is given, which repeats its own cases."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASES = """
from hypothesis import given, settings, strategies as st
from tests.seeds import seeded

@settings(max_examples=5)
@given(st.integers(0, 10**9))
def test_draws(number):
    print("drawn", number, seeded(7))

def test_fails():
    assert False
"""


def drawn(folder: Path, seed: str | None) -> tuple[list[str], str]:
    """Return a session's cases and its output. Its tests lie outside the repository."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RESTOW_SEED": seed or ""}
    path = folder / "test_cases.py"
    path.write_text(CASES, encoding="utf-8")
    options = ["-s", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "tests.conftest"]
    command = [sys.executable, "-m", "pytest", *options, "-c", str(ROOT / "pyproject.toml"), str(path)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return re.findall(r"drawn \d+ \d+", done.stdout), done.stdout


def test_cases_are_the_same_in_every_run_without_a_seed(tmp_path: Path) -> None:
    first, said = drawn(tmp_path, None)
    assert len(first) == 5, said
    assert drawn(tmp_path, None)[0] == first
    assert "random cases: the same in every run" in said


def test_seed_draws_other_cases_and_repeats_them(tmp_path: Path) -> None:
    cases, said = drawn(tmp_path, "5")
    assert len(cases) == 5, said
    assert drawn(tmp_path, "5")[0] == cases
    assert drawn(tmp_path, "6")[0] != cases != drawn(tmp_path, None)[0]
    assert said.count("RESTOW_SEED=5 draws them again") == 2, "in the header and below the failure"


def test_full_suite_draws_a_new_seed_each_time() -> None:
    """As in the Makefile; a given seed is kept."""
    command = ["make", "-n", "test-full", f"SETUP={ROOT / 'Makefile'}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(r"RESTOW_SEED=\$\{RESTOW_SEED:-\$\(.*randbelow", said)
