"""Speed of simulated clusters: `python -m benchmarks.simulate [--json]`.

Five brokers, 100 partitions with 3 replicas, every check switched on:

    idle       no records and no faults: virtual seconds per second
    at work    200 records/s with acks=all, consumer groups and a fault every 30 s: virtual seconds per second
    steps      frames that brokers and clients receive in such runs, per hour of all cores

The peer of the first two is a real cluster, which needs a second for each second. The whole takes about two
minutes.
"""

from __future__ import annotations

import os

from benchmarks.report import Row, command_line, print_rows
from restow.runtime.clock import SystemClock
from restow.sim.run import Scenario, SimulationReport, simulate
from restow.sim.spread import spread

IDLE = Scenario(seed=1, duration_s=3_600, partitions=100, records_per_s=0, workloads=("produce",), faults=())
SEEDS = range(1, 9)
CORES = len(os.sched_getaffinity(0))


def main() -> None:
    """Measure and print."""
    command = command_line("Simulated clusters, beside real time.")
    arguments = command.parse_args()
    print_rows("Simulated clusters", _rows(), as_json=arguments.json)


def _rows() -> list[Row]:
    idle = simulate(IDLE)
    clock = SystemClock()
    began_s = clock.monotonic_s()
    runs = spread(_at_work, SEEDS, processes=CORES, look_every_s=60)
    reports = [each for each in runs if each is not None]
    took_s = clock.monotonic_s() - began_s
    for report in (idle, *reports):
        if report.violations:
            raise SystemExit(f"seed {report.seed}: {report.violations}")
    virtual_s = sum(each.virtual_seconds for each in reports)
    busy_s = sum(each.wall_seconds for each in reports)
    steps = sum(each.steps for each in reports)
    speed = "s/s"
    return [
        Row(
            name="idle",
            ours=idle.speed,
            peer=1,
            peer_name="real time",
            unit=speed,
            more_is_better=True,
            limit=1_000,
        ),
        Row(
            name="at work",
            ours=virtual_s / busy_s,
            peer=1,
            peer_name="real time",
            unit=speed,
            more_is_better=True,
            limit=100,
        ),
        Row(
            name=f"steps, {CORES} cores",
            ours=steps / took_s * 3600,
            unit="per hour",
            more_is_better=True,
            limit=1e6,
        ),
    ]


def _at_work(seed: int) -> SimulationReport:
    return simulate(
        Scenario(
            seed=seed,
            duration_s=600,
            partitions=100,
            records_per_s=200,
            workloads=("produce", "groups"),
            fault_every_s=30,
        ),
        leave_garbage=True,
    )


if __name__ == "__main__":
    main()
