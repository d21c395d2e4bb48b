"""The small scenes of the demo succeed, show their commands, and leave no files behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).parents[3] / "scripts" / "demo.py"


def test_demo_runs_every_small_scene(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), "--scenes"],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    names = subprocess.run(
        [sys.executable, str(DEMO), "--list"], capture_output=True, encoding="utf-8", check=True
    )
    titles = [line.split(maxsplit=1)[1] for line in names.stdout.splitlines()]
    assert len(titles) >= 5
    assert [title for title in titles if title not in done.stdout] == []
    assert "$ restow place" in done.stdout
    assert "$ restow groups assign" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_demo_refuses_an_unknown_scene() -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO), "--scenes", "nonesuch"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tempfile.gettempdir(),
    )
    assert done.returncode == 1
    assert "no scene 'nonesuch'" in done.stderr
