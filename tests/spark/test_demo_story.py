"""The demo's story succeeds, says so in its last line, and leaves only its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from restow.snapshot import read_snapshot

pytestmark = [pytest.mark.spark, pytest.mark.full, pytest.mark.classic]

DEMO = Path(__file__).parents[2] / "scripts" / "demo.py"


def test_demo_story_succeeds_and_leaves_only_its_report(tmp_path: Path) -> None:
    scratch, report = tmp_path / "scratch", tmp_path / "made" / "report.html"
    scratch.mkdir()
    before = {process.pid for process in psutil.process_iter()}
    done = subprocess.run(
        [sys.executable, str(DEMO), "--report", str(report)],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch), "PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    label, _, facts = done.stdout.splitlines()[-1].partition(" ")
    assert label == "demo:"
    told = json.loads(facts)
    assert told["acked"] > 10_000
    assert (told["lost"], told["verified"], told["killed"], told["run"]) == (0, True, True, "done")
    assert told["report"] == str(report)
    assert min(told["predicted_seconds_without_the_kill"], told["predicted_seconds"]) > 0
    assert told["actual_seconds"] > 0
    assert "$ restow ui --snapshot made/demo/snapshot.json --journal made/demo/journal" in done.stdout
    assert read_snapshot(tmp_path / "made" / "demo" / "snapshot.json").topic["orders"].partitions
    assert list((tmp_path / "made" / "demo" / "journal").rglob("journal.jsonl"))
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") >= 5
    assert "broker 1 killed" in page
    assert "rehearsed: broker 1 dies at 35%" in page
    assert [path.name for path in scratch.iterdir() if path.name.startswith("restow")] == []
    assert [process.name() for process in _ours() if process.pid not in before] == []


def _ours() -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if "demo_load.py" in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found
