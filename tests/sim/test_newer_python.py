"""A seed gives the same run on a newer Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.test_simulated_runs import report_of

ROOT = Path(__file__).parents[2]
NEWER = tuple(f"3.{minor}" for minor in range(20, sys.version_info.minor, -1))


def newer_python() -> str:
    """Return a newer Python that is installed here: on the path, or among pyenv's versions."""
    for version in NEWER:
        found = [str(each) for each in Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        for each in filter(None, [shutil.which(f"python{version}"), *found]):
            if subprocess.run([each, "--version"], capture_output=True, check=False).returncode == 0:
                return each
    pytest.skip("no newer Python is installed")


@pytest.mark.full
def test_same_seed_gives_the_same_run_on_a_newer_python(tmp_path: Path) -> None:
    subprocess.run([newer_python(), "-m", "venv", str(tmp_path)], check=True)
    python = str(tmp_path / "bin" / "python")
    requirements = str(ROOT / "requirements" / "runtime.txt")
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"]
    subprocess.run([python, *install, requirements], check=True)
    here, there = report_of(1, 1), report_of(1, 2, python)
    assert (here["trace"], here["steps"]) == (there["trace"], there["steps"])
