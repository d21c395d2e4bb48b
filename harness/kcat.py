"""kcat, the command line client on librdkafka: from the PATH, or Debian's package.

The package and its libraries are downloaded by `apt-get download`, which needs no rights, and unpacked into
the user's cache; nothing is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.java import Missing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TIMEOUT_S = 120
_LAST_CHARACTERS = 1_000
_ADVICE = "install kcat, or let apt-get reach a Debian mirror"
# These must be the system's own, not others of the same name.
_NEVER_BROUGHT = ("libc6", "libgcc", "gcc-")


class KcatFailed(AssertionError):
    """kcat ended with an error. The message has its output."""


@dataclass(frozen=True, slots=True)
class Kcat:
    """kcat, and the libraries it needs."""

    program: str
    libraries: tuple[str, ...] = ()

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """Return kcat's output. Raises KcatFailed."""
        done = subprocess.run(
            [self.program, *arguments],
            input=given,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            env=self.environment(),
        )
        if done.returncode != 0:
            said = (done.stdout + done.stderr)[-_LAST_CHARACTERS:].decode(errors="replace")
            raise KcatFailed(f"kcat {' '.join(arguments)}: {done.returncode}\n{said}")
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Return its environment: ours, with its libraries before the system's."""
        if not self.libraries:
            return dict(os.environ)
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(self.libraries)}


@cache
def kcat() -> Kcat:
    """Find or fetch kcat. Raises Missing if neither is possible."""
    if found := shutil.which("kcat") or shutil.which("kafkacat"):
        return Kcat(found)
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise Missing("there is no kcat on the PATH, nor an apt-get to download it with: install kcat")
    root = fetched_once("kcat-debian", "Debian's kcat (5 MB)", _fetch)
    folders = sorted({str(library.parent) for library in root.rglob("*.so*")})
    return Kcat(str(root / "usr" / "bin" / "kcat"), tuple(folders))


def _fetch(partial: Path) -> Path:
    packages = partial / "packages"
    packages.mkdir()
    _succeed(["apt-get", "download", *_needed()], packages)
    root = partial / "root"
    for package in sorted(packages.glob("*.deb")):
        _succeed(["dpkg-deb", "-x", str(package), str(root)], packages)
    return root


def _needed() -> list[str]:
    """Return kcat's package and all its dependencies."""
    command = ["apt-cache", "depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts"]
    command += ["--no-breaks", "--no-replaces", "--no-enhances", "kcat"]
    listed = _succeed(command, None).splitlines()
    names = [line for line in listed if line[:1].isalnum() and not line.startswith(_NEVER_BROUGHT)]
    if not names:
        raise Missing(f"apt knows of no package kcat: {_ADVICE}")
    return names


def _succeed(command: Sequence[str], folder: Path | None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-_LAST_CHARACTERS:]
        raise Missing(f"kcat could not be fetched ({' '.join(command[:2])} failed): {_ADVICE}\n{said}")
    return done.stdout
