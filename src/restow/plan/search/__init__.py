"""The search for a better assignment, on arrays. `solve` is the entry point; it imports numba if it can."""

from restow.plan.search.problem import Problem, Solution
from restow.plan.search.solve import never, solve

__all__ = ["Problem", "Solution", "never", "solve"]
