"""Restow: where Kafka partitions live, who reads them, and how they move.

    with restow.connect("localhost:9092") as cluster:
        plan = restow.plan(cluster.snapshot(), drain=[3], balance=True)
        run = cluster.execute(plan, throttle="50MB/s")
        assert cluster.verify(plan).holds

Nothing is imported before somebody asks for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from restow._stages import late

if TYPE_CHECKING:
    from restow import assignors, cluster, errors, placement
    from restow.connection import Cluster, connect
    from restow.errors import RestowError
    from restow.execute import execute
    from restow.pipeline import pipeline
    from restow.plan import plan, read_load, read_plan, write_plan
    from restow.rehearse import rehearse
    from restow.snapshot import read_snapshot, snapshot, write_snapshot
    from restow.verify import verify

__version__ = "0.1.0"

__all__ = [
    "Cluster",
    "RestowError",
    "__version__",
    "assignors",
    "cluster",
    "connect",
    "errors",
    "execute",
    "pipeline",
    "placement",
    "plan",
    "read_load",
    "read_plan",
    "read_snapshot",
    "rehearse",
    "snapshot",
    "verify",
    "write_plan",
    "write_snapshot",
]

if not TYPE_CHECKING:
    _PACKAGES = (
        "assignors",
        "cluster",
        "errors",
        "execute",
        "pipeline",
        "placement",
        "plan",
        "rehearse",
        "snapshot",
        "verify",
    )
    _name = late(
        __name__,
        {
            "RestowError": "restow.errors",
            **dict.fromkeys(("Cluster", "connect"), "restow.connection"),
            **dict.fromkeys(("read_load", "read_plan", "write_plan"), "restow.plan"),
            **dict.fromkeys(("read_snapshot", "write_snapshot"), "restow.snapshot"),
        },
    )

    def __getattr__(name: str) -> Any:
        return import_module(f"restow.{name}") if name in _PACKAGES else _name(name)
