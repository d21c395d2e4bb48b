"""Debian packages for tests, without installing them.

A package and its libraries are downloaded by `apt-get download`, which needs no rights, and unpacked into the
user's cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.java import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LAST_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and the libraries that it needs beside the system's."""

    program: str
    libraries: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """Return its environment: ours, with its libraries before the system's."""
        if not self.libraries:
            return dict(os.environ)
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(self.libraries)}


def unpacked(package: str, size: str) -> Path:
    """Return the folder in which a package and what it needs beside the installed ones are unpacked.

    Raises Missing.
    `size` says how much there is to download.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Missing(
            f"there is no {package} on the PATH, nor an apt-get to download it with: install {package}"
        )
    return fetched_once(f"{package}-debian", f"Debian's {package} ({size})", partial(_fetch, package))


def libraries(root: Path) -> tuple[str, ...]:
    """Return the folders of shared libraries in an unpacked package."""
    return tuple(sorted({str(library.parent) for library in root.rglob("*.so*")}))


def _fetch(package: str, partial: Path) -> Path:
    packages = partial / "packages"
    packages.mkdir()
    _succeed(package, ["apt-get", "download", *_needed(package)], packages)
    root = partial / "root"
    for each in sorted(packages.glob("*.deb")):
        _succeed(package, ["dpkg-deb", "-x", str(each), str(root)], packages)
    return root


def _needed(package: str) -> list[str]:
    """Return the packages that an installation would add: this one, and libraries that are not there."""
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", package]
    listed = _succeed(package, command, None).splitlines()
    names = [line.split()[1] for line in listed if line.startswith("Inst ")]
    if not names:
        raise Missing(f"apt would install no package for {package}: {_advice(package)}")
    return names


def _succeed(package: str, command: Sequence[str], folder: Path | None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-_LAST_CHARACTERS:]
        raise Missing(
            f"{package} could not be fetched ({' '.join(command[:2])} failed): {_advice(package)}\n{said}"
        )
    return done.stdout


def _advice(package: str) -> str:
    return f"install {package}, or let apt-get reach a Debian mirror"
