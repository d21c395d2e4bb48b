"""One name for one thing: class names, and the words of docs/glossary.md in help and in JSON."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from restow.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/restow"
ADAPTERS = SRC / "assignors/adapters"
"""Its classes carry the names of what they stand in for."""
FORMER_NAMES = ("change-rf", "--rf")
"""Names that operators type, and that stay."""
TOLD = ("cli", "execute", "plan", "snapshot", "verify", "pipeline", "model", "ui")
"""The folders in which documents are made that users read as JSON."""


@cache
def glossary() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of the glossary, and those that it says not to use."""
    words: list[str] = []
    forbidden: list[str] = []
    for line in (ROOT / "docs/glossary.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] != "word" and set(cells[0]) != {"-"}:
            words += cells[0].split(", ")
            forbidden += re.findall("`([^`]+)`", cells[3])
    return tuple(words), tuple(forbidden)


def misused(text: str) -> list[str]:
    """Return the forbidden words in a text, once the glossary's own words are taken out of it."""
    words, forbidden = glossary()
    left = re.sub(r"[\s_-]+", " ", text.lower())
    for name in FORMER_NAMES:
        left = re.sub(rf"(?<!\w){re.sub('[-]+', ' ', name).strip()}(?!\w)", "", left)
    for word in words:
        left = re.sub(rf"\b{word.lower()}s?\b", "", left)
    return [each for each in forbidden if re.search(rf"\b{each}s?\b", left)]


def helps(
    command: Any, path: str = "restow", above: typer.Context | None = None
) -> Iterator[tuple[str, str]]:
    context = typer.Context(command, info_name=path.rpartition(" ")[2], parent=above)
    yield path, command.get_help(context)
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            yield from helps(each, f"{path} {name}", context)


HELPS = dict(helps(typer.main.get_command(app)))


def modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((SRC / folder).rglob("*.py")):
            yield path, ast.parse(path.read_text())


def keys() -> dict[str, set[str]]:
    """Return the keys of dict displays and the fields of values, which `asdict` makes keys of, by name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in modules(*TOLD):
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        found[key.value].add(path.name)
            elif isinstance(node, ast.ClassDef) and node.decorator_list:
                for each in node.body:
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                        found[each.target.id].add(path.name)
    return found


def test_public_classes_have_different_names() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules("."):
        if not path.is_relative_to(ADAPTERS):
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    where[node.name].append(path.relative_to(SRC).as_posix())
    assert len(where) > 300
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_a_misused_word_is_found_beside_the_right_one() -> None:
    assert misused("The replication factor; change-rf; a log dir, log dirs") == []
    assert misused("replication_factor") == []
    assert misused("The replication factor is a factor") == ["factor"]
    assert misused("in two directories, as wished") == ["directories", "wished"]


@pytest.mark.parametrize("command", HELPS)
def test_help_uses_the_words_of_the_glossary(command: str) -> None:
    assert misused(HELPS[command]) == []


def test_json_keys_use_the_words_of_the_glossary() -> None:
    found = keys()
    assert "replication_factor" in found
    assert {key: (misused(key), paths) for key, paths in found.items() if misused(key)} == {}
