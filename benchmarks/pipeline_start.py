"""From the command to its result: `restow pipeline run` on a lake as small as the demo's, on two cores.

Most of that time is Spark's own start. Two runs before it record the archive of classes, if there is none.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.report import Row, command_line, print_rows
from harness.lakes import write_faulty_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MASTER = "local[2]"
_LIMIT_S = 12.0


def _taken(folder: Path) -> tuple[float, float]:
    """Run the command; return the seconds, and the processor time of it and all that it started."""
    places = ["--lake", str(folder / "lake"), "--load", str(folder / "loads")]
    command = ["pipeline", "run", *places, "--master", _MASTER]
    started, used = time.perf_counter(), _children_s()
    subprocess.run([sys.executable, "-m", "restow", *command], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started, _children_s() - used


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def start_rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_faulty_lake(folder / "lake", seed=1)
        for _ in range(2):
            _taken(folder)
        seconds, processor_s = _taken(folder)
    work = "pipeline run on a small lake, command to result"
    yield Row(name=work, ours=seconds, unit="s", limit=_LIMIT_S)
    yield Row(name=f"{work}: processor time", ours=processor_s, unit="s")


def main(arguments: Sequence[str] | None = None) -> None:
    given = command_line(__doc__ or "").parse_args(arguments)
    print_rows("pipeline, start", start_rows(), as_json=given.json)


if __name__ == "__main__":
    main()
