"""The tutorial can be followed: its commands run on an embedded cluster and show what the page shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.terminal import plain, run_in_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
RESTOW = [sys.executable, "-m", "restow"]
READERS_OWN = ("pip install", "export")
"""What the reader does to their own machine; the tests have it done already."""

ANSWER = " y"
"""Typed in advance, so that the terminal shows it before the question."""


def test_the_tutorial_runs_and_shows_what_the_page_shows(tmp_path: Path) -> None:
    bodies: dict[str, list[str]] = {"console": [], "python": []}
    for kind, body in BLOCK.findall(PAGE.read_text()):
        bodies[kind].append(body)
    (tmp_path / "fill.py").write_text(*bodies["python"])
    examples = [
        part for body in bodies["console"] for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
    ]
    examples = [example for example in examples if not example.startswith(READERS_OWN)]
    assert examples[0].startswith("restow cluster up")
    with cluster(examples[0].split()[1:]) as bootstrap:
        environment = {
            **os.environ,
            "RESTOW_BOOTSTRAP_SERVER": bootstrap,
            "XDG_STATE_HOME": str(tmp_path / "state"),
        }
        for example in examples[1:]:
            line, *shown = example.splitlines()
            code, screen = run_in_terminal(
                command(line), folder=tmp_path, environment=environment, typed=f"{ANSWER.strip()}\n"
            )
            assert code == 0, screen
            # Joined, because where a line wraps depends on the widths of other cells.
            printed = " ".join(without_numbers(text) for text in plain(screen).splitlines())
            for wanted in (text for text in shown if text.strip() not in ("", "…")):
                words = without_numbers(wanted.removesuffix(ANSWER))
                assert words in printed, f"{line}: {wanted!r} is not shown there:\n{screen}"
                printed = printed.partition(words)[2]


@contextmanager
def cluster(arguments: list[str]) -> Iterator[str]:
    """Start the page's cluster on free ports; yield its addresses."""
    ours = ["--port", "0", "--json", "--config", "group.initial.rebalance.delay.ms=0"]
    with subprocess.Popen([*RESTOW, *arguments, *ours], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["bootstrap_servers"]
        finally:
            process.terminate()


def command(line: str) -> list[str]:
    program, *arguments = shlex.split(line)
    if program == "python":
        return [sys.executable, *arguments]
    assert program == "restow"
    # The page tells readers to add this if their disk is nearly full; the disk of a test may be.
    return [*RESTOW, *arguments, *(["--fill", "0.99"] if arguments[0] == "plan" else [])]


def without_numbers(line: str) -> str:
    """The words of a line: numbers, ids and the controller differ from run to run."""
    line = line.replace("controller", "up")
    line = re.sub(r"it is '\S+'|cluster +[\w-]{22}$|sha256:[0-9a-f]+", "ID", line)
    return " ".join(re.sub(r"[\d.]+ ?(?:[kM]?B)?|█", "N", line).replace("N", " N ").split())
