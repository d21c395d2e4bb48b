"""kcat, the command line client on librdkafka: from the PATH, or Debian's package (`harness/debian.py`)."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from harness.debian import libraries, unpacked

_TIMEOUT_S = 120
_LAST_CHARACTERS = 1_000


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
    root = unpacked("kcat", "5 MB")
    return Kcat(str(root / "usr" / "bin" / "kcat"), libraries(root))
