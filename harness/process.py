"""Runs Java servers as processes that never outlive us, and finds ports for them."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from restow.runtime.ports import HeldPort

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

HOST = "127.0.0.1"
_LAST_CHARACTERS = 4_000

# Java runs until it ends, or until standard input does.
_UNTIL_WE_ARE_GONE = """\
exec 3<&0
"$@" </dev/null 3<&- &
java=$!
(read _ <&3; kill -9 $java) 2>/dev/null &
wait $java
kill $! 2>/dev/null
"""


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in its own session, which logs to `log` and works in that file's folder.

    It is killed when the block ends, and also when this process dies, because a shell beside it waits for the
    end of this process's pipe.
    """
    with (
        log.open("ab") as file,
        subprocess.Popen(
            ["sh", "-c", _UNTIL_WE_ARE_GONE, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            cwd=log.parent,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            # Java and both shells are one group, led by the shell we started, which ends last.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def last_words(log: Path) -> str:
    """Return the end of a process's log."""
    return log.read_text(encoding="utf-8", errors="replace")[-_LAST_CHARACTERS:] or "it said nothing"


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Return ports for servers, which no one else is dealt during the block."""
    with ExitStack() as stack:
        numbers = []
        for _ in range(count):
            port = HeldPort(HOST)
            stack.callback(port.let_go)
            numbers.append(port.number)
        yield numbers
