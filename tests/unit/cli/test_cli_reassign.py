"""`restow reassign` as a program, and under the name of Apache's tool."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from restow import __version__
from restow.cli.app import run

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--version"], 0, f"{__version__}\n", ""),
        (["--list", "--version"], 0, f"{__version__}\n", ""),
        (["--list"], 1, "", "Please specify --bootstrap-server\n"),
        ([], 1, "", "Command must include exactly one action"),
        (["--list", "--bootstrap-server", "no address"], 1, "Error: bootstrap servers: 'no address'", ""),
        (
            ["--execute", "--bootstrap-server", "a:1", "--zookeeper", "b:2", "--reassignment-json-file", "f"],
            1,
            "",
            "zookeeper is not a recognized option\n",
        ),
        (["--help"], 0, "Usage:", ""),
    ],
)
def test_reassign_prints_apaches_errors(
    words: list[str], code: int, out: str, err: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reassign", *words]) == code
    said = capsys.readouterr()
    assert said.out.startswith(out)
    assert bool(said.out) == bool(out)
    assert said.err.startswith(err)


def test_package_installs_only_the_restow_program() -> None:
    """A program of the name of Apache's tool would hide the real one, or be hidden by it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["scripts"]) == {"restow"}


def test_launcher_in_the_documents_runs_under_apaches_name(tmp_path: Path) -> None:
    """The test runs the documented lines, in another folder."""
    text = (ROOT / "docs" / "reassign.md").read_text("utf-8")
    lines = [line.strip() for line in text.splitlines() if "/usr/local/bin/kafka-reassign-partitions" in line]
    assert lines
    script = "\n".join(lines).replace("/usr/local/bin", str(tmp_path))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", "-ec", script], check=True, env=environment)
    command = [str(tmp_path / "kafka-reassign-partitions"), "--list", "a b", "--version"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert refused.returncode == 1
    assert "'a b' belongs to no option" in refused.stderr
    command.remove("a b")
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{__version__}\n"
