"""The search for a better assignment, on arrays. `solve` is the entry point; it imports numba if it can."""

from restow.plan.search.problem import Problem, Progress, Solution
from restow.plan.search.solve import never, silent, solve

__all__ = ["Problem", "Progress", "Solution", "never", "silent", "solve"]
