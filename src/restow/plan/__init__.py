"""Decide what to change and in which order.

    plan = restow.plan(snapshot, drain=[3], balance=True)

Pure: from values to values; only `planning` reads a clock, to stop the search in time.
"""

from restow._stages import make_callable
from restow.model import Left, Limits, Move, Plan, Promise, Step
from restow.plan.files.reading import read_load, read_plan, write_plan
from restow.plan.planning import plan

__all__ = [
    "Left",
    "Limits",
    "Move",
    "Plan",
    "Promise",
    "Step",
    "plan",
    "read_load",
    "read_plan",
    "write_plan",
]

make_callable(__name__)
