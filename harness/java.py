"""Finds a Java that is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

OLDEST_JAVA = 17
_INSTALL = f"install Java {OLDEST_JAVA} or newer (Debian: openjdk-17-jre-headless) or set JAVA_HOME"


class HarnessError(Exception):
    """A started program did not start or did not work. Tests fail."""


class Missing(HarnessError):
    """Java, a jar or a program is not available. The message says why and what to do.

    Raised only by lookups and downloads: tests are skipped for this, and for nothing else.
    """


def java() -> str:
    """Return the `java` of JAVA_HOME, or of the PATH, if it is new enough."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(command)
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise Missing(f"{where}: {_INSTALL}")
    major = _major_version(found)
    if major < OLDEST_JAVA:
        raise Missing(f"{found} is Java {major or 'of an unknown version'}: {_INSTALL}")
    return found


@cache
def _major_version(command: str) -> int:
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(match.group(1)) if match else 0
