"""Who imports whom, and what may be imported where."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import restow

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "restow"
MODULES = sorted(SRC.rglob("*.py"))
PACKAGES = ["restow", *(m.name for m in pkgutil.walk_packages(restow.__path__, "restow.") if m.ispkg)]

# A library, and the folders under src/restow that may import it. An empty tuple: none.
ALLOWED = {
    "time": ("runtime",),
    "random": ("runtime",),
    "socket": ("runtime",),
    "asyncio": (
        *("runtime", "cluster", "client", "cli", "sim", "ui"),
        *("assignors/adapters", "pipeline/sampling"),
    ),
    "uvloop": ("runtime",),
    "pyspark": ("pipeline",),
    "kafka": ("assignors/adapters", "wire", "client"),
    "google_crc32c": ("wire", "cluster/log"),
    "kazoo": ("cluster/store", "client"),
    "sqlite3": ("cluster/store", "ui"),
    "aiokafka": ("assignors/adapters",),
    "starlette": ("ui", "cli/ui"),
    "uvicorn": ("ui", "cli/ui"),
    "typer": ("cli",),
    "rich": ("cli",),
    "yaml": ("cli",),
}
# Modules that the command line must not import before a command runs: completion must be fast.
SLOW = ("numpy", "rich", "yaml", "restow.placement", "restow.assignors")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> set[str]:
    """Return every absolute module name that a file imports, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
    return found


def packages_of_ours() -> dict[str, set[str]]:
    """Each package, or module beside them, and the others that it imports; not those named `_…`."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        own = path.relative_to(SRC).parts[0].removesuffix(".py")
        others = {name.split(".")[1] for name in imports(path) if name.startswith("restow.")}
        found.setdefault(own, set()).update(name for name in others - {own} if not name.startswith("_"))
    return {own: others for own, others in found.items() if not own.startswith("_")}


def test_architecture_table_names_every_import() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text()
    _, _, section = document.partition("## Who may import whom")
    table = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", section, re.MULTILINE):
        names, others = (set(re.findall(r"`(\w+)`", cell)) for cell in row)
        table |= dict.fromkeys(names, others)
    assert table == packages_of_ours()


def test_import_contracts_hold() -> None:
    script = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([script, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("library", ALLOWED)
def test_libraries_are_imported_only_in_their_folders(library: str) -> None:
    strangers = [
        name_of(path)
        for path in MODULES
        if any(module.split(".")[0] == library for module in imports(path))
        and not path.relative_to(SRC).as_posix().startswith(tuple(f"{home}/" for home in ALLOWED[library]))
    ]
    assert strangers == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_have_all_exported_names(package: str) -> None:
    module = importlib.import_module(package)
    offered = getattr(module, "__all__", [])
    assert [name for name in offered if not hasattr(module, name)] == []
    assert len(set(offered)) == len(offered)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["place", "--help"], ["groups", "assign", "-h"]]
)
def test_help_and_version_import_no_slow_module(arguments: list[str]) -> None:
    code = f"import sys; from restow.cli import run; run({arguments!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stderr.split()).isdisjoint(SLOW)
