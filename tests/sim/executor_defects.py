"""Deliberate defects of the executor: its journal, limits, throttles, undo and mark."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from restow.client.group_lock import GroupLock
from restow.execute.journal.journal import Journal
from restow.execute.repair import undo
from restow.execute.run import start
from restow.execute.run.executor import Executor
from restow.execute.throttle import throttling
from restow.execute.throttle.throttling import Throttling
from restow.plan.schedule.admission import Admission
from tests.sim.defects import Defects, Patch, wrap

EXECUTOR = Defects("plans")
FEW = ("kill", "store-cut", "slow-link", "controller-kill")
RARELY_S = 15.0


@EXECUTOR.add(
    "A run restores no throttle but removes them all.", "the throttles", faults=FEW, every_s=RARELY_S
)
def throttle_restored_to_nothing(patch: Patch) -> None:
    def made(restoration: Any) -> Any:
        def removed(*it: Any) -> Any:
            back = restoration(*it)
            return replace(back, changes=dict.fromkeys(back.changes))

        return removed

    wrap(patch, throttling, "restoration", made)


@EXECUTOR.add(
    "The journal does not say what a throttle was before.", "the throttles", faults=FEW, every_s=RARELY_S
)
def prior_throttle_not_in_the_journal(patch: Patch) -> None:
    def made(set_configs: Any) -> Any:
        async def without_prior(self: Any, changes: Any, prior: Any, *it: Any) -> Any:
            return await set_configs(self, changes, dict.fromkeys(prior), *it)

        return without_prior

    wrap(patch, Throttling, "_set", made)


@EXECUTOR.add(
    "The executor ignores how many moves a broker may have.", "more than", faults=FEW, every_s=RARELY_S
)
def moves_per_broker_ignored(patch: Patch) -> None:
    patch.setattr(Admission, "busy", lambda self, route: None)
    patch.setattr(Admission, "shut", lambda self, gate: False)
    patch.setattr(Admission, "shut_gate", lambda self, route: None)


@EXECUTOR.add(
    "An undo restores the replicas in another order.", "after an undo", faults=("reset",), every_s=RARELY_S
)
def undo_in_another_replica_order(patch: Patch) -> None:
    def made(back: Any) -> Any:
        return lambda move, now: back(replace(move, before=move.before[::-1]), now)

    wrap(patch, undo, "_back", made)


@EXECUTOR.add(
    "A cancel leaves the replicas in the order of the target.", "(cancelled)", faults=FEW, every_s=RARELY_S
)
def order_not_restored_by_cancel(patch: Patch) -> None:
    async def leave(*_: object) -> None:
        """Leave the order as it is."""

    patch.setattr(undo, "_reorder", leave)


@EXECUTOR.add(
    "An undo takes back the oldest change first.", "not the newest first", faults=FEW, every_s=RARELY_S
)
def undo_oldest_first(patch: Patch) -> None:
    def made(inverse: Any) -> Any:
        def reversed_inverse(run: Any, *it: Any, **more: Any) -> Any:
            finished = tuple(reversed(run.ledger.finished))
            return inverse(replace(run, ledger=replace(run.ledger, finished=finished)), *it, **more)

        return reversed_inverse

    wrap(patch, start, "inverse", made)


@EXECUTOR.add(
    "A step is submitted before it is in the journal.",
    "before it is in the journal",
    faults=FEW,
    every_s=RARELY_S,
)
def target_before_the_journal(patch: Patch) -> None:
    def made(submit: Any) -> Any:
        async def submitted(self: Any, begun: Any) -> None:
            if begun:
                await self._submitter.submit(begun, self._known.alive)
            await submit(self, begun)

        return submitted

    wrap(patch, Executor, "_submit", made)


@EXECUTOR.add("The journal is not synced.", "the throttles", faults=FEW, every_s=RARELY_S)
def journal_not_synced(patch: Patch) -> None:
    class Unsynced:
        def __init__(self, file: Any) -> None:
            self._file = file

        def sync(self) -> None:
            """Leave it to the machine."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    def made(init: Any) -> Any:
        def initialised(self: Any, *it: Any) -> None:
            init(self, *it)
            self._file = Unsynced(self._file)

        return initialised

    wrap(patch, Journal, "__init__", made)


@EXECUTOR.add(
    "A resumed run submits steps again that are under way.",
    "again, which moves",
    faults=FEW,
    every_s=RARELY_S,
)
def step_submitted_twice_after_resume(patch: Patch) -> None:
    def made(run: Any) -> Any:
        async def submitted_again(self: Any) -> Any:
            await self._submitter.submit(self._adopted, self._known.alive)
            return await run(self)

        return submitted_again

    wrap(patch, Executor, "run", made)


@EXECUTOR.add("A run keeps its mark on the cluster after its end.", "mark", faults=FEW, every_s=RARELY_S)
def mark_not_removed(patch: Patch) -> None:
    kept: list[object] = []

    async def keep_on(self: Any) -> None:
        self._own = None
        kept.append(asyncio.get_running_loop().create_task(self._keep(self._taken)))

    patch.setattr(GroupLock, "_leave", keep_on)
