"""What the extra `restow[plan]` (numba) costs to install, and what it brings to a search.

    python -m benchmarks.numba_extra

It installs Restow with the extra and without into temporary folders, and searches the same clusters in
processes with numba (with an empty cache first, then with a filled one) and without. Times are of the
processor. A search ends after 10 seconds at the latest. docs/decisions/0008 quotes this.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BROKERS, MOST_S = 30, 10.0
CASES = ((1_000, 0.09), (1_000, 0.02), (10_000, 0.09))
_LISTED_MB = 1

_SEARCH = """
import sys
if sys.argv[1] == "without":
    sys.modules["numba"] = None
import json, time
from benchmarks.plan_clusters import problem_of, skewed
from restow.plan.search import solve
from restow.plan.search.compiled import compiler_s
cases, brokers, most_s = json.loads(sys.argv[2])
told = []
for partitions, band in cases:
    problem = problem_of(skewed(brokers, 3 * partitions), band, ("disk", "replicas", "leaders"))
    began, started, waited = time.monotonic(), time.process_time(), compiler_s()
    over = lambda: time.monotonic() - began - (compiler_s() - waited) > most_s
    solve(problem, over)
    told.append([time.process_time() - started, over()])
print(json.dumps(told))
"""


def main() -> None:
    print_installs()
    print()
    print_searches()


def print_installs() -> None:
    """Print the megabytes of both installs, the seconds they took, and the packages of a megabyte or more."""
    print(f"{'install':<24}{'MB':>6}{'processor s':>13}")
    for name, wanted in (("restow", "."), ("restow[plan]", ".[plan]")):
        with tempfile.TemporaryDirectory() as folder:
            before = _children_s()
            command = [
                sys.executable,
                "-m",
                "uv",
                "pip",
                "install",
                "--quiet",
                "--no-cache",
                "--target",
                folder,
            ]
            subprocess.run([*command, wanted], cwd=ROOT, check=True)
            sizes = {each.name: _megabytes(each) for each in Path(folder).iterdir()}
            print(f"{name:<24}{sum(sizes.values()):>6.0f}{_children_s() - before:>13.0f}")
        if wanted == ".[plan]":
            for package in sorted(sizes, key=lambda each: -sizes[each]):
                if sizes[package] >= _LISTED_MB:
                    print(f"  {package:<22}{sizes[package]:>6.0f}")


def print_searches() -> None:
    """Print the seconds of each search: with numba at first and later, and without."""
    with tempfile.TemporaryDirectory() as cache:
        columns = [_searched("with", cache), _searched("with", cache), _searched("without", cache)]
    print(f"{'partitions':>10}{'band':>6}{'numba, first':>14}{'numba, later':>14}{'without':>10}")
    for (partitions, band), *times in zip(CASES, *columns, strict=True):
        cells = [f"{'over ' if over else ''}{seconds:.2f}" for seconds, over in times]
        print(f"{partitions:>10,}{band:>6.0%}{cells[0]:>14}{cells[1]:>14}{cells[2]:>10}")


def _searched(numba: str, cache: str) -> list[tuple[float, bool]]:
    """Search all clusters in a process; the first search of the first process waits for the compiler."""
    command = [sys.executable, "-c", _SEARCH, numba, json.dumps((CASES, BROKERS, MOST_S))]
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return [(seconds, over) for seconds, over in json.loads(done.stdout)]


def _megabytes(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(each.stat().st_size for each in files if each.is_file()) / 1e6


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
