"""Python packages that only some tests need, in folders of their own, pinned by `requirements/*.txt`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.java import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

_REQUIREMENTS = Path(__file__).parents[1] / "requirements"
_LAST_CHARACTERS = 1_500


def package_folder(name: str, what: str) -> Path:
    """Return a folder with what `requirements/{name}.txt` pins; fetch it if missing. Raises Missing."""

    def fetch(partial: Path) -> Path:
        return install(name, partial / "lib")

    return fetched_once(f"{name}-{pinned_version(name)}", f"{what}, for Python", fetch)


def pinned_version(name: str) -> str:
    """Return the version of a package in the file of its name."""
    lines = (_REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split()[0].partition("==")[2] for line in lines if line.startswith(f"{name}=="))


def install(name: str, target: Path, environment: Mapping[str, str] | None = None) -> Path:
    """Install what `requirements/{name}.txt` pins into the folder, and return it. Raises Missing."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--no-build-isolation", "--no-compile"]
    command += ["--target", str(target), "-r", str(_REQUIREMENTS / f"{name}.txt")]
    pip = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, env=environment
    )
    if pip.returncode != 0:
        raise Missing(f"{name} could not be fetched or built: {pip.stdout.strip()[-_LAST_CHARACTERS:]}")
    return target
