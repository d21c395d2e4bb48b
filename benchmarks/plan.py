"""Planning: how long it takes, how much is copied against the least possible, and whether all is in band.

The peers are on no package registry; their figures were recorded once, on two cores, and are constants here.
Each row is printed as it comes. `--clusters DIR` plans every recorded cluster in a folder too, in place of
the ones that are made up; `--large` ten million replicas, and the command on a million. Kafka's own placement
is asked in a JVM.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.plan_cases import (
    copied,
    counted,
    emptied,
    hard,
    joined,
    proven,
    relieved,
    small,
    whole_command,
)
from benchmarks.plan_clusters import (
    even,
    larger,
    loads_of,
    moves_of,
    problem_of,
    read,
    skewed,
    snapshot_of,
)
from benchmarks.report import Row, best_of, command_line, print_each
from restow.plan.judge.bound import least_to_shed
from restow.plan.judge.evaluate import evaluate
from restow.plan.request.request import PlanRequest
from restow.plan.search import solve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.plan_clusters import Cluster
    from restow.plan.search import Problem, Solution

# name: (solve time in ms and bytes over the bound of Cruise Control as recorded; what is promised of ours)
_RECORDED = {
    "skew40": (6_100.0, 1.164, 100.0, 1.005),
    "40 brokers, 50,000 replicas": (math.nan, math.nan, 100.0, 1.005),
    "add5": (3_600.0, 1.072, 100.0, 1.01),
    "skew200": (166_000.0, 1.126, 500.0, 1.005),
    "200 brokers, 500,000 replicas": (math.nan, math.nan, 500.0, 1.005),
    "300 brokers, 1,000,000 replicas": (386_000.0, 1.106, 1_500.0, 1.005),
    "1000 brokers, 10,000,000 replicas": (math.nan, math.nan, 30_000.0, 1.005),
}
_PEER = "Cruise Control (recorded)"
_MEMORY_GIB = {1_000_000: 2.0, 10_000_000: 12.0}
_RUNS = 3


def searched(cluster: Cluster, band: float, runs: int = _RUNS) -> Iterator[Row]:
    """Time the search alone, from arrays to arrays; the judge checks it at the wide bands."""
    problem = problem_of(cluster, band)
    bound = least_to_shed(problem, problem.forced)
    found: list[Solution] = []
    taken = best_of(runs, lambda: found.append(solve(problem, enough_bytes=bound)))
    nothing = (math.nan, math.nan, math.nan, 1.01)
    peer_ms, peer_ratio, limit_ms, limit_ratio = _RECORDED.get(cluster.name, nothing)
    wide = band > 0.05
    name = f"{cluster.name}, ±{band:.0%}"
    known = wide and not math.isnan(peer_ms)
    yield Row(
        name=f"{name}: solve",
        ours=taken,
        peer=peer_ms if known else math.nan,
        peer_name=_PEER if known else "–",
        limit=None if math.isnan(limit_ms) else limit_ms * (1 if wide else 10),
    )
    yield Row(
        name=f"{name}: bytes / bound",
        ours=copied(problem, found[-1]) / proven(problem, found[-1]) if bound else 1.0,
        peer=peer_ratio if known else math.nan,
        peer_name=_PEER if known else "–",
        unit="",
        limit=limit_ratio if wide else 1.01,
    )
    yield Row(name=f"{name}: out of band", ours=found[-1].wrong, unit="shares", limit=0.0)
    if wide and runs == _RUNS:
        yield from judged(cluster, found[-1], bound)


def judged(cluster: Cluster, solution: Solution, bound: float) -> Iterator[Row]:
    """Evaluate a solution with the judge, which shares no code with the search."""
    snapshot, load = snapshot_of(cluster), loads_of(cluster)
    judgement = evaluate(snapshot, load, moves_of(cluster, solution), PlanRequest(balance=True))
    name = cluster.name
    yield Row(name=f"{name}: rules broken", ours=len(judgement.violations), unit="", limit=0)
    yield Row(
        name=f"{name}: copied, least possible", ours=judgement.copied_bytes / 1e9, peer=bound / 1e9, unit="GB"
    )
    for goal, score in judgement.scores.items():
        yield Row(name=f"{name}: {goal} max/mean", ours=score.ratio()[0], unit="", limit=1.09 + 1e-9)


def in_a_process(brokers: int, replicas: int) -> Iterator[Row]:
    """Plan a large cluster in a process of its own, and measure its memory."""
    command = [sys.executable, "-m", "benchmarks.plan", "--json", "--only", f"{brokers},{replicas}"]
    child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for line in child.stdout.splitlines():
        record = json.loads(line)
        yield Row(
            name=record["name"],
            ours=record["ours"],
            peer=math.nan if record["peer"] is None else record["peer"],
            peer_name=record["peer_name"],
            unit=record["unit"],
            limit=record["limit"],
        )


def alone(brokers: int, replicas: int) -> Iterator[Row]:
    """Plan in that process: wide bands, narrow ones if it is not too large, and the peak memory."""
    cluster = skewed(brokers, replicas)
    bands = (0.09, 0.02) if replicas <= 1_000_000 else (0.09,)
    for band in bands:
        yield from searched(cluster, band, runs=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    limit = _MEMORY_GIB.get(replicas)
    yield Row(name=f"{cluster.name}: memory at most", ours=peak, unit="GiB", limit=limit)


def growing(sizes: Sequence[int]) -> Iterator[Row]:
    """Time ten times the replicas, which should take about ten times as long, up to a logarithm."""
    taken = []
    for replicas in sizes:
        problem = problem_of(skewed(100, replicas), 0.09)
        bound = least_to_shed(problem, problem.forced)

        def once(problem: Problem = problem, bound: float = bound) -> Solution:
            return solve(problem, enough_bytes=bound)

        taken.append(best_of(4, once))
    for (fewer, before), (more, after) in pairwise(zip(sizes, taken, strict=True)):
        yield Row(
            name=f"100 brokers: {more:,} replicas against {fewer:,}",
            ours=after,
            peer=before,
            peer_name=f"{fewer:,}",
            target=10 * math.log(more) / math.log(fewer),
        )


def rows_of(clusters: Sequence[Cluster], large: bool) -> Iterator[Row]:
    """Yield all rows, one after the other."""
    for each in clusters:
        for band in (0.09, 0.02):
            yield from searched(each, band)
    for each in clusters:
        if each.name == "skew200":
            yield from searched(larger(each, 300, 2), 0.02, runs=1)
    for band in (0.09, 0.02):
        yield from searched(even(300, 1_000_000), band, runs=1)
    yield from in_a_process(300, 1_000_000)
    if large:
        yield from in_a_process(1_000, 10_000_000)
    yield from small()
    yield from hard()
    made = skewed(40, 50_000)
    for cases in (relieved(made), emptied(made), joined(), counted(made)):
        yield from cases
    yield from growing((10_000, 100_000, 1_000_000, 10_000_000)[: 4 if large else 3])
    yield from whole_command(skewed(6, 102, racks=3), 1_000.0)
    yield from whole_command(made, 2_000.0)
    if large:
        yield from whole_command(skewed(300, 1_000_000), 10_000.0)


def main() -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--clusters", type=Path, help="a folder of recorded clusters")
    parser.add_argument("--large", action="store_true", help="ten million replicas too")
    parser.add_argument("--only", metavar="BROKERS,REPLICAS", help="one cluster of that size, and its memory")
    arguments = parser.parse_args()
    if arguments.only:
        brokers, replicas = map(int, arguments.only.split(","))
        rows = alone(brokers, replicas)
    else:
        found = list(read(arguments.clusters)) if arguments.clusters else []
        clusters = found or [skewed(40, 50_000), skewed(200, 500_000)]
        rows = rows_of(clusters, arguments.large)
    print_each("planning", rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
