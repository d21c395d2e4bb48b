"""Documents name links, paths and commands that exist, and nothing of one machine."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import typer

from restow.cli import app

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href|srcset)=\"([^\"]+)\"")
COMMAND = re.compile(r"(?:^(?: {4})?(?:\$ )?|`)(restow [^`\n]+)", re.MULTILINE)
# Put together here, so that this file does not hold what it looks for. `someone` is nobody in particular.
ABSOLUTE_PATH = re.compile(
    r"(?<![\w.:/~$}*-])/(?:wor" + r"k|hom" + r"e|Use" + r"rs|roo" + r"t|mn" + r"t)/(?!someone\b)[\w.-]+"
)
REGISTRY = re.compile(
    r"(?:pypi|files\.python" + r"hosted|repo1?\.mav" + r"en|registry\.n" + r"pmjs)\.(?:org|apache)"
)


def tracked() -> list[Path]:
    """The files under version control, or all that could be where this is not a checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of tracked files")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


@pytest.mark.parametrize("pattern", [ABSOLUTE_PATH, REGISTRY], ids=["absolute path", "registry"])
def test_files_contain_no_machine_paths(pattern: re.Pattern[str]) -> None:
    hits = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path, text in texts()
        if path.name != "LICENSE"
        for match in pattern.finditer(text)
    ]
    assert hits == []


def test_the_patterns_find_what_they_look_for() -> None:
    assert ABSOLUTE_PATH.search('open("/' + 'home/somebody/x")')
    assert REGISTRY.search("https://py" + "pi.org/simple")
    assert not ABSOLUTE_PATH.search("src/home/somebody")


def test_relative_links_have_targets() -> None:
    dead = []
    for path in (
        sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")) + sorted(ROOT.glob("*/README.md"))
    ):
        for match in LINK.finditer(path.read_text()):
            link = match.group(1) or match.group(2)
            target, _, anchor = link.partition("#")
            page = path.parent / target if target else path
            if "://" not in link and not (page.exists() and (not anchor or anchor in anchors(page))):
                dead.append(f"{path.relative_to(ROOT)}: {link}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The headings of a page, as they are written in links to them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_paths_in_the_architecture_page_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    source = ROOT / "src" / "restow"
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", page))
    assert len(named) > 80
    missing = [path for path in named if not (source / path).exists() and not (ROOT / path).exists()]

    folders = [source]
    for line in page.split("    src/restow/\n")[1].split("\n\n")[0].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2 - 3
        if folder := re.match(r"\w+/(?=\s|$)", line.lstrip()):
            folders = [*folders[: depth + 1], folders[depth] / folder.group()]
        elif depth < len(folders):  # a file; what is further right goes on with the line before
            folders = folders[: depth + 1]
        names = re.findall(r"\b\w+(?:\.py|/(?=[,:]))", line)
        missing += [f"{folders[-1] / name}" for name in names if not (folders[-1] / name).exists()]
    assert sorted(missing) == []


def test_names_in_the_architecture_page_are_defined_in_the_files_beside_them() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.partition("## Where to look")[2].partition("## File map")[0].splitlines()
    found, missing = 0, []
    for row in rows:
        paths = [ROOT / "src" / "restow" / path for path in re.findall(r"`((?:\w+/)+\w+\.py)`", row)]
        code = "\n".join(path.read_text() for path in paths)
        for listed in re.findall(r"\.py` \(([^)]*)\)", row):
            for name in re.findall(r"`(?:\w+\.)?(\w+)`", listed):
                found += 1
                if not re.search(rf"^ *(?:async )?(?:def|class) {name}\b|^{name}\b", code, re.MULTILINE):
                    missing.append((name, row[:60]))
    assert found > 60
    assert missing == []


def test_index_lists_every_page() -> None:
    folder = ROOT / "docs"
    linked = {match.group(1) for match in LINK.finditer((folder / "README.md").read_text())}
    pages = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"README.md"}
    assert pages <= linked


def test_readme_fits_on_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_pictures_are_well_formed() -> None:
    pictures = sorted((ROOT / "docs").rglob("*.svg"))
    assert pictures
    for picture in pictures:
        assert ET.fromstring(picture.read_text()).tag.endswith("svg")  # noqa: S314  (our own files)


def test_make_targets_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"`?make ([a-z-]+)`", (ROOT / name).read_text()))
        assert named <= targets, name


def test_commands_in_the_documents_exist_with_their_options() -> None:
    unknown, seen = [], 0
    restow: Any = typer.main.get_command(app)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for line in COMMAND.findall(path.read_text()):
            seen += 1
            command = restow
            # What comes after two spaces, a hash, a bar or an arrow is not part of the command.
            words = re.split(r"  | #|[|<>…]", line)[0].split()[1:]
            while words and (below := getattr(command, "commands", {})) and not words[0].startswith("-"):
                command = below.get(words[0])
                if command is None:
                    unknown.append(f"{path.name}: {line}: {words[0]}")
                    break
                words = words[1:]
            if command is None or command.name == "reassign":  # has the options of Apache's tool
                continue
            options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            given = {word for word in words if word.startswith("--")} - {"--help"}
            unknown += [f"{path.name}: {line}: {option}" for option in given - options]
    assert unknown == []
    assert seen > 100
