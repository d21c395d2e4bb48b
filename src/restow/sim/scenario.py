"""Settings of one simulated run."""

from __future__ import annotations

from restow._frozen import frozen
from restow.sim.faults import KINDS


@frozen
class Scenario:
    """Settings of a run. The same scenario gives the same run."""

    seed: int = 0
    duration_s: float = 60.0
    brokers: int = 5
    partitions: int = 20
    records_per_s: int = 50
    workloads: tuple[str, ...] | None = None
    """Names of the workloads; None lets the seed draw some of them all."""
    faults: tuple[str, ...] = KINDS
    fault_every_s: float | None = None
    """The mean time between faults; None lets the seed draw it."""
    without_faults: tuple[int, ...] = ()
    """Numbers of drawn faults that do not strike, to find those that a failure needs."""
