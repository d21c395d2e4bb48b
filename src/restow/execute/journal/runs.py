"""Where journals are kept: one folder per cluster, with one folder per run.

$XDG_STATE_HOME/restow/runs/<cluster id>/
  lock  holder.json
  20261115-082137/
    journal.jsonl  control.json
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.execute.journal.journal import FILE_NAME, DamagedJournal, journal_bytes, parse_entries
from restow.execute.journal.ledger import LAST_TURN, NotARun, RunLedger, ledger_of
from restow.execute.predict.prediction import error_told, range_told
from restow.execute.run.lock import BadStateFolder
from restow.runtime.disk import SystemDisk
from restow.sizes import human_duration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from restow.execute.throttle.throttles import Setting
    from restow.model import Plan
    from restow.runtime.clock import Clock
    from restow.runtime.disk import Disk

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_SMALL_BYTES = 256 * 1024
"""Journals up to this size are kept summed up: a run reads those of earlier runs several times."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has a journal."""

    name: str
    folder: str
    ledger: RunLedger

    @property
    def age(self) -> tuple[int, str]:
        """Return a sort key: newer runs are larger. Runs of earlier versions have no turn and sort first."""
        return self.ledger.turn, self.name


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one cluster."""

    disk: Disk
    folder: str

    def new(self, clock: Clock) -> str:
        """Return an unused name for a run, made from the current time."""
        stem = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
        name, number = stem, 1
        while self.disk.exists(self.path(name)):
            number += 1
            name = f"{stem}-{number}"
        return name

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def names(self) -> tuple[str, ...]:
        """Return the names of all runs, in the order of the times in them."""
        if not self.disk.exists(self.folder):
            return ()
        try:
            found = self.disk.list(self.folder)
        except OSError as error:
            raise BadStateFolder(f"{self.folder} cannot be read: {error.strerror or error}") from error
        return tuple(name for name in found if self.disk.exists(f"{self.path(name)}/{FILE_NAME}"))

    def all(self) -> tuple[Run, ...]:
        """Return all runs, oldest first, without those that died before their first entry."""
        found = []
        for name in self.names():
            try:
                found.append(self.get(name))
            except NotARun:
                continue
        return tuple(sorted(found, key=lambda run: run.age))

    def sound(self, cluster_id: str) -> tuple[tuple[Run, ...], dict[str, str]]:
        """Return the runs with a sound journal, oldest first, and what is wrong with each other journal.

        A damaged journal, or a journal of another cluster, says nothing reliable about this cluster.
        """
        found: list[Run] = []
        wrong: dict[str, str] = {}
        for name in self.names():
            try:
                run = self.get(name)
            except NotARun:
                continue
            except DamagedJournal as error:
                wrong[name] = str(error)
                continue
            if run.ledger.plan.cluster_id == cluster_id:
                found.append(run)
            else:
                wrong[name] = f"it is of the cluster {run.ledger.plan.cluster_id!r}, not of this one"
        return tuple(sorted(found, key=lambda run: run.age)), wrong

    def get(self, name: str) -> Run:
        folder = self.path(name)
        if name in ("", ".", "..") or "/" in name or not self.disk.exists(f"{folder}/{FILE_NAME}"):
            there = ", ".join(self.names()[-5:]) or "none"
            raise InvalidInput(f"there is no run {name!r} on this cluster; the latest are: {there}")
        data = journal_bytes(self.disk, folder)
        ledger = _known(data, folder) if len(data) <= _SMALL_BYTES else _summed_up(data, folder)
        return Run(name, folder, ledger)

    def last_to_move(self) -> Run:
        """Return the run that was active last, among the runs that move something."""
        movers = [run for run in self.all() if run.ledger.plan.moves]
        return movers[-1] if movers else self.latest()

    def next_turn(self) -> int:
        """Return a turn greater than that of every readable run here."""
        turns = [0]
        for name in self.names():
            with suppress(NotARun, DamagedJournal):
                turns.append(self.get(name).ledger.turn)
        return min(max(turns) + 1, LAST_TURN)

    def latest(self, *, unsettled: bool = False) -> Run:
        """Return the newest run, or the newest that is not settled."""
        for run in reversed(self.all()):
            if not (unsettled and run.ledger.is_settled):
                return run
        raise InvalidInput(
            "no run on this cluster needs care" if unsettled else f"there is no run in {self.folder}"
        )


def _summed_up(journal: bytes, folder: str) -> RunLedger:
    return ledger_of(parse_entries(journal, f"{folder}/{FILE_NAME}")[0], folder)


_known = lru_cache(maxsize=16)(_summed_up)


def runs_of(disk: Disk, root: str, cluster_id: str) -> Runs:
    """Return the runs of a cluster under a state folder."""
    return Runs(disk, f"{root}/runs/{_UNSAFE.sub('_', cluster_id) or '_'}")


def state_folder(environ: Mapping[str, str]) -> str:
    """Return the folder for state, following the XDG base directory specification."""
    base = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".local/state")
    return f"{base}/restow"


def throttles_on(plan: Plan, journal: str | PathLike[str] | None = None) -> set[Setting] | None:
    """Return the throttles that runs of this plan still have set, by their journals; None without a run."""
    of_this = _runs_of_plan(plan, journal)
    return {setting for run in of_this for setting in run.ledger.ours} if of_this else None


def predictions_told(plan: Plan, journal: str | PathLike[str] | None = None) -> tuple[str, ...]:
    """Say how far off the prediction of the plan's last run was, or how it ended; nothing without a run."""
    for run in reversed(_runs_of_plan(plan, journal)):
        ledger, predicted = run.ledger, run.ledger.prediction
        if predicted is None:
            continue
        if ledger.took_s is None:
            went = f"it has ended: {ledger.outcome}" if ledger.outcome else "it has no end yet"
        else:
            off = error_told(predicted.seconds.p50, ledger.took_s, ledger.steered, ledger.held, ledger.waited)
            went = f"it took {human_duration(ledger.took_s)}{off}"
        return (f"run {run.name}: predicted {range_told(predicted)}; {went}",)
    return ()


def last_run_of(plan: Plan, journal: str | PathLike[str] | None = None) -> Run | None:
    """Return the last run of this plan that has ended and was predicted; None if there is none."""
    runs = reversed(_runs_of_plan(plan, journal))
    return next((run for run in runs if run.ledger.prediction and run.ledger.copied), None)


def _runs_of_plan(plan: Plan, journal: str | PathLike[str] | None) -> list[Run]:
    root = str(journal or state_folder(os.environ))
    runs, _ = runs_of(SystemDisk(), root, plan.cluster_id).sound(plan.cluster_id)
    return [run for run in runs if run.ledger.plan.moves == plan.moves]
