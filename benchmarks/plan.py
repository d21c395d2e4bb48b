"""Planning: how long it takes, how much is copied against the least possible, and whether all is in band.

The peers are on no package registry; their figures were recorded once, on two cores, and are constants here.
`--clusters DIR` plans every recorded cluster in a folder too; `--large` those of a million replicas and more.
"""

from __future__ import annotations

import math
import resource
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.plan_clusters import loads_of, problem_of, read, skewed, snapshot_of
from benchmarks.report import Row, best_of, command_line, print_rows
from restow.model import Broker
from restow.placement import place
from restow.plan.bound import least_to_shed
from restow.plan.evaluate import evaluate
from restow.plan.propose import propose
from restow.plan.request import Request
from restow.plan.search import solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.plan_clusters import Cluster
    from restow.plan.search import Problem, Solution

# name: (solve time in ms and bytes over the bound of Cruise Control as recorded; what is promised of ours)
_RECORDED = {
    "skew40": (6_100.0, 1.164, 100.0, 1.005),
    "add5": (3_600.0, 1.072, 100.0, 1.01),
    "skew200": (166_000.0, 1.126, 500.0, 1.005),
    "300 brokers, 1,000,000 replicas": (386_000.0, 1.106, 1_500.0, 1.005),
    "1000 brokers, 10,000,000 replicas": (math.nan, math.nan, 30_000.0, 1.005),
}
_PEER = "Cruise Control (recorded)"


def copied(problem: Problem, solution: Solution) -> float:
    """The bytes that a solution copies."""
    part_of = np.repeat(np.arange(len(problem.leader)), np.diff(problem.offsets))
    return float(problem.following[part_of[solution.holder != problem.home], 0].sum())


def searched(cluster: Cluster, band: float, runs: int) -> Iterator[Row]:
    """From arrays to arrays."""
    problem = problem_of(cluster, band)
    bound = least_to_shed(problem, problem.forced)
    found: list[Solution] = []
    taken = best_of(
        runs, lambda: found.append(solve(problem, enough_bytes=bound)), warm_up=1 if runs > 1 else 0
    )
    peer_ms, peer_ratio, limit_ms, limit_ratio = _RECORDED.get(
        cluster.name, (math.nan, math.nan, math.nan, math.nan)
    )
    wide = band > 0.05
    name = f"{cluster.name}, ±{band:.0%}"
    yield Row(
        name=f"{name}: solve",
        ours=taken,
        peer=peer_ms if wide else math.nan,
        peer_name=_PEER if wide and not math.isnan(peer_ms) else "–",
        limit=None if math.isnan(limit_ms) else limit_ms * (1 if wide else 10),
    )
    yield Row(
        name=f"{name}: bytes / bound",
        ours=copied(problem, found[-1]) / bound if bound else 1.0,
        peer=peer_ratio if wide else math.nan,
        peer_name=_PEER if wide and not math.isnan(peer_ratio) else "–",
        unit="",
        limit=limit_ratio if wide and not math.isnan(limit_ratio) else 1.01,
    )
    yield Row(name=f"{name}: out of band", ours=found[-1].wrong, unit="shares", limit=0.0)


def judged(cluster: Cluster) -> Iterator[Row]:
    """From a snapshot to a plan with waves, judged."""
    snapshot, load = snapshot_of(cluster), loads_of(cluster)
    request = Request(balance=True)
    plans = []
    taken = best_of(1, lambda: plans.append(propose(snapshot, load, request)), warm_up=0)
    judgement = evaluate(snapshot, load, plans[-1].moves, request)
    yield Row(name=f"{cluster.name}: snapshot to plan", ours=taken)
    yield Row(name=f"{cluster.name}: rules broken", ours=len(judgement.violations), unit="", limit=0)
    for goal, score in judgement.scores.items():
        yield Row(name=f"{cluster.name}: {goal} max/mean", ours=score.ratio()[0], unit="", limit=1.09 + 1e-9)


def emptied(cluster: Cluster) -> Iterator[Row]:
    """One broker drained; one replaced by another."""
    snapshot = snapshot_of(cluster)
    for name, request in (
        ("drain one", Request(drain=frozenset({0}))),
        ("replace one", Request(replace={0: len(cluster.rack) - len(np.unique(cluster.rack))})),
    ):
        plan = propose(snapshot, None, request)
        ratio = plan.bytes_to_copy / (plan.bound_bytes or 1)
        yield Row(name=f"{cluster.name}, {name}: bytes / bound", ours=ratio, unit="", limit=1.005)


def counted(cluster: Cluster) -> Iterator[Row]:
    """Replica counts alone, against what Kafka's own placement would copy, which starts anew."""
    problem = problem_of(cluster, 0.09, ("replicas",))
    brokers = [Broker(id=number, rack=str(rack)) for number, rack in enumerate(cluster.rack.tolist())]
    anew = np.asarray(place(brokers, partitions=len(cluster.size), replication_factor=3, start_index=0))
    now = cluster.home.reshape(-1, 3)
    stays = (anew[:, :, None] == now[:, None, :]).any(axis=2)
    theirs = float((cluster.size[:, None] * ~stays).sum())
    ours = copied(problem, solve(problem))
    yield Row(
        name=f"{cluster.name}, replica counts alone: copied",
        ours=ours / 1e9,
        peer=theirs / 1e9,
        peer_name="Apache --generate",
        unit="GB",
        target=0.2,
    )


def growing() -> Iterator[Row]:
    """Ten times the replicas should take about ten times as long."""
    before = math.nan
    for replicas in (10_000, 100_000):
        cluster = skewed(100, replicas)
        problem = problem_of(cluster, 0.09)
        bound = least_to_shed(problem, problem.forced)
        taken = best_of(1, partial(solve, problem, enough_bytes=bound))
        yield Row(
            name=f"100 brokers, {replicas:,} replicas", ours=taken, peer=before, peer_name="a tenth of it"
        )
        before = taken


def main() -> None:
    parser = command_line(__doc__ or "")
    parser.add_argument("--clusters", type=Path, help="a folder of recorded clusters")
    parser.add_argument("--large", action="store_true", help="a million and ten million replicas too")
    arguments = parser.parse_args()
    clusters = list(read(arguments.clusters)) if arguments.clusters else []
    made = skewed(40, 50_000)
    rows = [row for each in (*clusters, made) for band in (0.09, 0.02) for row in searched(each, band, 3)]
    rows += [*judged(made), *emptied(made), *counted(made), *growing()]
    if arguments.large:
        for brokers, replicas in ((300, 1_000_000), (1_000, 10_000_000)):
            rows += searched(skewed(brokers, replicas), 0.09, 1)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            limit = 2.0 if replicas == 1_000_000 else 12.0
            rows.append(
                Row(name=f"{replicas:,} replicas: memory at most", ours=peak, unit="GiB", limit=limit)
            )
    print_rows("planning", rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
