"""Random cases are the same in every run, unless a seed is given; then that seed repeats them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def drawn(seed: str | None) -> tuple[list[str], str]:
    """What a session draws, and all that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "RESTOW_SEED"}
    if seed is not None:
        environment["RESTOW_SEED"] = seed
    folder = ROOT / "tests" / "unit" / "harness"
    path = folder / f"_cases_{os.getpid()}.py"
    path.write_text(CASES, encoding="utf-8")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-s", "-p", "no:randomly", "-p", "no:cacheprovider", str(path)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        path.unlink()
    return re.findall(r"drawn \d+ \d+", done.stdout), done.stdout


def test_cases_are_the_same_in_every_run_without_a_seed() -> None:
    first, said = drawn(None)
    assert len(first) == 5
    assert drawn(None)[0] == first
    assert "random cases: the same in every run" in said


@pytest.mark.parametrize("seed", ["5"])
def test_seed_draws_other_cases_and_repeats_them(seed: str) -> None:
    cases, said = drawn(seed)
    assert len(cases) == 5
    assert drawn(seed)[0] == cases
    assert drawn("6")[0] != cases != drawn(None)[0]
    assert said.count(f"RESTOW_SEED={seed} draws them again") == 2, "in the header and below the failure"


def test_full_suite_draws_a_new_seed_each_time() -> None:
    """As the Makefile asks for it, and the same when it is given one."""
    command = ["make", "-n", "test-full", f"SETUP={ROOT / 'Makefile'}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(r"RESTOW_SEED=\$\{RESTOW_SEED:-\$\(.*randbelow", said)
