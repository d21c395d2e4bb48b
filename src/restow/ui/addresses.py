"""The addresses of plans, rehearsals and runs."""

from __future__ import annotations

from urllib.parse import quote


def plan_address(name: str) -> str:
    """Return the address of a plan's page."""
    return f"/plans/{name}"


def rehearsal_address(plan: str, name: str) -> str:
    """Return the address of a rehearsal's page."""
    return f"{plan_address(plan)}/rehearsals/{name}"


def run_address(name: str) -> str:
    """Return the address of a run's page."""
    return f"/runs/{quote(name, safe='')}"
