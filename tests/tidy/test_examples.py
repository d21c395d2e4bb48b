"""The examples in the documents do what they say."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from restow.cli import app

ROOT = Path(__file__).parents[2]
# test_tutorial.py runs the tutorial, on a cluster.
DOCUMENTS = [path for path in sorted((ROOT / "docs").rglob("*.md")) if path.name != "tutorial.md"]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
WITH_PYTHON = [path for path in DOCUMENTS if ">>> " in path.read_text()]
WITH_COMMANDS = [path for path in DOCUMENTS if CONSOLE.search(path.read_text())]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_documents_have_examples() -> None:
    assert {path.name for path in WITH_PYTHON} >= {"placement.md", "assignors.md"}
    assert {path.name for path in WITH_COMMANDS} >= {"placement.md", "assignors.md"}


@pytest.mark.parametrize("path", WITH_PYTHON, ids=name_of)
def test_python_examples_run(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from restow.assignors import registry

    monkeypatch.setattr(registry, "_known", dict(registry._known))
    outcome = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=name_of)
def test_console_examples_print_what_is_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command runs, and prints the lines shown below it, apart from dots, in that order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for block in CONSOLE.findall(path.read_text()):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *shown = example.splitlines()
            printed = run(line)
            remaining = iter(printed)
            for wanted in (text for text in shown if text.strip() not in ("", "…")):
                assert wanted in remaining, f"{line}: {wanted!r} is not in what it prints, or not there"


def run(line: str) -> list[str]:
    program, *arguments = shlex.split(line)
    assert program == "restow"
    file = None
    if ">" in arguments:
        *arguments, _, file = arguments
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    if file is not None:
        Path(file).write_text(result.stdout)
    return [text.rstrip() for text in result.stdout.splitlines()]
