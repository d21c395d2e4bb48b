"""kcat, the command line client on librdkafka: from the PATH, or Debian's package (`harness/debian.py`)."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

from harness.debian import Program, libraries, unpacked

_TIMEOUT_S = 120
_LAST_CHARACTERS = 1_000


class KcatFailed(AssertionError):
    """kcat ended with an error. The message has its output."""


class Kcat(Program):
    """kcat."""

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


@cache
def kcat() -> Kcat:
    """Find or fetch kcat. Raises Missing if neither is possible."""
    if found := shutil.which("kcat") or shutil.which("kafkacat"):
        return Kcat(found)
    root = unpacked("kcat", "5 MB")
    return Kcat(str(root / "usr" / "bin" / "kcat"), libraries(root))
