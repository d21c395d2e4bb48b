"""`restow simulate`: what it prints and with which exit code it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from typer.testing import CliRunner

from restow.cli.app import app
from restow.cli.simulate import SimulatedRun, _draw
from restow.sim.run import SimulationReport
from restow.sim.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [
    "seed",
    "virtual_seconds",
    "wall_seconds",
    "speed",
    "steps",
    "faults",
    "acked",
    "lost",
    "violations",
    "trace",
]


def restow(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "restow", *arguments], capture_output=True, text=True, check=False
    )


def test_json_has_one_object_per_run_in_the_order_of_the_seeds() -> None:
    done = restow("simulate", "--seed", "7", "--runs", "2", "--duration", "2s", "--brokers", "3", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [each["seed"] for each in found] == [7, 8]
    assert [list(each) for each in found] == [KEYS, KEYS]
    assert all(each["acked"] > 0 and each["violations"] == [] for each in found)


def test_trace_has_events_and_log_lines(tmp_path: Path) -> None:
    file = tmp_path / "events.txt"
    done = restow("simulate", "--seed", "7", "--duration", "2s", "--brokers", "3", "--trace", str(file))
    assert done.returncode == 0, done.stderr
    assert "No promise was broken." in done.stdout
    lines = file.read_text(encoding="utf-8").splitlines()
    assert any("is controller, epoch 1" in line for line in lines)
    assert any(line.endswith("the faults are over") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--faults", "kill,flood"], "there is no fault 'flood'"),
        (["--workloads", "produce,sleep"], "there is no workload 'sleep'"),
        (["--duration", "soon"], "'soon' is not a duration"),
        (["--brokers", "2"], "greater than or equal to 3"),
        (["--runs", "0"], "greater than or equal to 1"),
        (["--runs", "2", "--trace", "x"], "leave out --runs"),
        (["--trace", "/no/such/folder/x"], "cannot be written"),
    ],
)
def test_bad_values_exit_with_code_2(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["simulate", *arguments])
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.split())


def test_interrupt_ends_all_processes() -> None:
    arguments = ["simulate", "--seed", "1", "--runs", "50", "--duration", "1s", "--brokers", "3", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "restow", *arguments],
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 130


def test_failure_is_told_with_its_seed_and_last_events() -> None:
    report = SimulationReport(
        seed=42,
        virtual_seconds=60,
        wall_seconds=2,
        steps=1,
        faults=1,
        acked=1,
        lost=1,
        violations=("12.000 s: orders-0 lost 1 acknowledged records",),
        trace="",
        last_events=("11.000 s: fault 0: kill of broker 1",),
    )
    run = SimulatedRun(
        scenario=Scenario(seed=42, faults=("kill",)), report=report, needed_faults=("fault 0: kill",)
    )
    console = Console(width=200, record=True)
    _draw(console, [run], wanted=1)
    text = console.export_text()
    for expected in (
        "Seed 42 broke promises:",
        "orders-0 lost 1 acknowledged records",
        "fault 0: kill of broker 1",
        "It still fails with these faults alone:",
        "restow simulate --seed 42 --duration 60s --brokers 5 --faults kill",
        "1 run failed",
    ):
        assert expected in text
