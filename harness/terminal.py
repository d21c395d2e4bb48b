"""Run a command in a terminal of its own and keep what it shows there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_ROWS = 40
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_REDRAWN = re.compile(r"(?:\r|\x1b\[2K|\x1b\[1A){2,}")


def run_in_terminal(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    columns: int = 90,
    typed: str = "",
) -> tuple[int, str]:
    """Run the command; return its exit code and everything it wrote, control sequences included.

    What is `typed` waits in the terminal until the command reads it.
    """
    screen, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": str(columns)},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
    ) as process:
        os.close(inside)
        os.write(screen, typed.encode())
        shown = bytearray()
        while more := _read(screen):
            shown += more
    os.close(screen)
    return process.returncode, shown.decode(errors="replace").replace("\r\n", "\n")


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # Linux reports the end of the other side as an I/O error
        return b""


def frames(shown: str) -> list[str]:
    """Return what a display that redraws itself showed one after the other, with its colours."""
    return [frame for frame in _REDRAWN.split(shown) if frame]


def plain(shown: str) -> str:
    """Return the text without colours and cursor movements."""
    return _CONTROL.sub("", shown)
