"""The shape of the code: sizes, docstrings, file names."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "harness", "scripts")
    for path in (ROOT / folder).rglob("*.py")
)
SOURCES = [path for path in OURS if path.is_relative_to(ROOT / "src")]
MODULE_LINES = 420
FUNCTION_LINES = 70


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_shape_finds_the_sources() -> None:
    assert len(SOURCES) > 10


def test_modules_are_short() -> None:
    long = {
        name_of(path): lines for path in OURS if (lines := len(path.read_text().splitlines())) >= MODULE_LINES
    }
    assert long == {}


def test_functions_are_short() -> None:
    long = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path in OURS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and body_lines(node) >= FUNCTION_LINES
    ]
    assert long == []


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body: a command's arguments are a table, and may be as long as it has flags."""
    assert function.end_lineno is not None
    return function.end_lineno - function.body[0].lineno + 1


def test_modules_have_docstrings() -> None:
    mute = [
        name_of(path)
        for path in SOURCES
        if not (ast.get_docstring(ast.parse(path.read_text())) or "").strip()
    ]
    assert mute == []


def test_no_module_is_called_utils_or_helpers() -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    assert [name_of(path) for path in OURS if path.name in drawers] == []


def test_values_are_declared_with_frozen() -> None:
    """`@frozen` of `restow._frozen` says these three options in one place."""
    spelled = "@dataclass(frozen=True, slots=True, kw_only=True)\n"
    assert [name_of(path) for path in SOURCES if spelled in path.read_text()] == []


def test_test_files_have_unique_names() -> None:
    """Folders of tests are no packages, so pytest tells files apart by name alone."""
    names = [path.name for path in OURS if path.name.startswith("test_")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
