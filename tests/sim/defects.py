"""Deliberate defects: small changes of the product that a simulated run must find.

A defect is a function that patches the product. Its decorator says in a sentence what is wrong, under which
workloads and faults to look for it, and which words of a checker find it. The four modules `*_defects.py`
hold them, and each has a file of tests, so that the workers of a test run share them. Where a second guard
makes a defect harmless, the defect removes both, and its sentence says so.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from restow.sim.faults import KINDS
from restow.sim.run import Scenario, simulate_safely
from restow.sim.spread import spread

if TYPE_CHECKING:
    from collections.abc import Callable

Patch = pytest.MonkeyPatch
MOST_SEEDS = 1_000
QUICK = ("high_watermark_too_early", "commit_of_an_old_generation_accepted", "deleted_replica_leaves_its_log")
"""The defects that `make test` looks for."""


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A defect, and how to look for it."""

    name: str
    sentence: str
    apply: Callable[[Patch], None]
    finds: str
    """Words of the violation that shows it."""
    workloads: tuple[str, ...]
    faults: tuple[str, ...]
    fault_every_s: float

    def scenario(self, seed: int) -> Scenario:
        """Return a small cluster, so that a seed takes less than a second."""
        return Scenario(
            seed=seed,
            partitions=6,
            records_per_s=20,
            workloads=self.workloads,
            faults=self.faults,
            fault_every_s=self.fault_every_s,
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The first run that showed a defect."""

    seeds: int
    violation: str


class Defects:
    """The defects of one part of the product, in the order of their definition."""

    def __init__(self, *workloads: str) -> None:
        self._workloads = ("produce", *workloads)
        self.all: dict[str, Defect] = {}

    def add(
        self,
        sentence: str,
        finds: str,
        *,
        workloads: tuple[str, ...] | None = None,
        faults: tuple[str, ...] = KINDS,
        every_s: float = 6.0,
    ) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
        """Return a decorator that adds the defect which the function applies."""

        def added(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
            self.all[apply.__name__] = Defect(
                name=apply.__name__,
                sentence=sentence,
                apply=apply,
                finds=finds,
                workloads=self._workloads if workloads is None else ("produce", *workloads),
                faults=faults,
                fault_every_s=every_s,
            )
            return apply

        return added


def wrap(patch: Patch, owner: Any, name: str, made: Callable[[Any], Any]) -> None:
    """Replace an attribute by what `made` returns for the original."""
    patch.setattr(owner, name, made(getattr(owner, name)))


def cases(defects: Defects) -> list[Any]:
    """Return the parameters of a test. `make test` looks for the quick ones, `make test-full` for all."""
    return [
        pytest.param(each, id=name, marks=() if name in QUICK else (pytest.mark.full,))
        for name, each in defects.all.items()
    ]


def check_found(defect: Defect) -> None:
    """Fail unless a run finds the defect, and shows nothing without it. With -s, print how many it took."""
    finding = look_for(defect)
    assert finding is not None, f"{MOST_SEEDS} seeds did not find it: {defect.sentence}"
    assert violations_of(defect, finding.seeds - 1) == [], "the sound product shows it too"
    print(f"{defect.name}: {finding.seeds} seeds, {finding.violation}")  # noqa: T201  shown with -s


def look_for(defect: Defect) -> Finding | None:
    """Run seeds 0, 1, 2, … with the defect until a checker finds it."""

    def broken(seed: int) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            defect.apply(patch)
            return violations_of(defect, seed, leave_garbage=True)

    with closing(spread(broken, range(MOST_SEEDS), processes=1, look_every_s=60)) as found:
        for seed, violations in enumerate(each for each in found if each is not None):
            if violations:
                return Finding(seeds=seed + 1, violation=violations[0])
    return None


def violations_of(defect: Defect, seed: int, *, leave_garbage: bool = False) -> list[str]:
    """Run this seed, and return the violations that would show the defect."""
    report = simulate_safely(defect.scenario(seed), leave_garbage=leave_garbage)
    found = [each for each in report.violations if defect.finds in each]
    if not found and any("AttributeError" in each for each in report.violations):
        raise LookupError(f"{defect.name} does not fit the product any more: {report.violations}")
    return found
