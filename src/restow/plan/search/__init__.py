"""The search for a better assignment, on arrays. `solve` is the way in; it brings numba with it."""

from restow.plan.search.problem import Problem, Solution
from restow.plan.search.solve import never, solve

__all__ = ["Problem", "Solution", "never", "solve"]
