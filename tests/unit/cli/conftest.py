"""Fixtures that run the command line: in this process, or as a process of its own where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from restow.cli import app

Invoke = Callable[..., Result]
Spawn = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Return `invoke("place", …)`, which runs the command with 80 columns and no terminal."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return call


@pytest.fixture
def answer(invoke: Invoke) -> Callable[..., Any]:
    """Return a function that runs a command, expects success, and parses its `--json`."""

    def call(*arguments: str) -> Any:
        result = invoke(*arguments, "--json")
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return json.loads(result.stdout)

    return call


@pytest.fixture
def refused(invoke: Invoke) -> Callable[..., str]:
    """Return a function that runs a command, expects exit code 2 and a one-line error, and returns it."""

    def call(*arguments: str, stdin: str | None = None) -> str:
        result = invoke(*arguments, stdin=stdin)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return call


@pytest.fixture
def spawn() -> Spawn:
    """Return a function that runs the program in a process of its own."""

    def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from restow.cli import main; main()", *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return call
