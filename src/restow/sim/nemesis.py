"""Draws the faults of a run, and lets them strike, also several at once.

A seed draws a few kinds of faults (a swarm), so that runs differ more than if every run had all of them. All
faults of a run are drawn before it begins, each with random numbers of its own, so that one of them can be
left out and the others stay as they are.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.runtime.chance import SeededChance
from restow.sim.faults import FAULTS, Cuts, Harm, target_of
from restow.sim.states import has_lone_isr

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.sim.cluster import SimCluster, SimNode
    from restow.sim.scenario import Scenario

_EVERY_S = (4.0, 8.0, 15.0, 30.0)
_LONGEST_S = 40
_MOST_AT_ONCE = 3
_LOOK_EVERY_S = 0.1
_PATIENCE_S = 60.0
POWER_LOSS = "power-loss"


@frozen
class DrawnFault:
    """A fault as the seed draws it."""

    number: int
    kind: str
    broker: int
    at_s: float
    """After the start of the faults."""
    lasts_s: float

    def __str__(self) -> str:
        return f"fault {self.number}: {self.kind} of broker {self.broker} for {self.lasts_s:.1f} s"


def draw_faults(scenario: Scenario) -> tuple[DrawnFault, ...]:
    """Return the faults of a run in the order of their times."""
    chance = SeededChance(f"{scenario.seed} faults")
    allowed = sorted(scenario.faults)
    kinds = [kind for kind in allowed if chance.randrange(3)] or allowed
    drawn_every_s = _EVERY_S[chance.randrange(len(_EVERY_S))]
    every_s = scenario.fault_every_s or drawn_every_s
    drawn: list[DrawnFault] = []
    at_s = 0.0
    while kinds:
        at_s += every_s * (500 + chance.randrange(1000)) / 1000
        if at_s >= scenario.duration_s:
            break
        drawn.append(
            DrawnFault(
                number=len(drawn),
                kind=kinds[chance.randrange(len(kinds))],
                broker=chance.randrange(scenario.brokers),
                at_s=at_s,
                lasts_s=min(scenario.duration_s - at_s, chance.randrange(_LONGEST_S * 1000) / 1000),
            )
        )
    return tuple(drawn)


class Nemesis:
    """Lets the drawn faults strike a cluster."""

    def __init__(self, cluster: SimCluster, scenario: Scenario, note: Callable[[str], None]) -> None:
        self._cluster, self._scenario, self._note = cluster, scenario, note
        self._cuts = Cuts(cluster)
        self._active: dict[int, tuple[str, SimNode]] = {}
        self._power_losses = 0
        """How many power losses are active or wait for a sound cluster."""
        self.count = 0
        """How many faults have struck."""

    async def harm(self) -> None:
        """Let all faults strike, and return when the last one is over."""
        left_out = set(self._scenario.without_faults)
        faults = [each for each in draw_faults(self._scenario) if each.number not in left_out]
        await asyncio.gather(*map(self._strike, faults))

    async def _strike(self, fault: DrawnFault) -> None:
        await asyncio.sleep(fault.at_s)
        node = target_of(fault.kind, self._cluster, self._cluster.nodes[fault.broker])
        if fault.kind == POWER_LOSS:
            await self._strike_with_power_loss(fault, node)
        elif self._may_strike(fault.kind, node):
            await self._let_strike(fault, node)
        else:
            self._note(f"{fault} is skipped")

    async def _let_strike(self, fault: DrawnFault, node: SimNode) -> None:
        self.count += 1
        self._active[fault.number] = fault.kind, node
        self._note(f"{fault}{'' if node.id == fault.broker else f', which is broker {node.id}'}")
        chance = SeededChance(f"{self._scenario.seed} fault {fault.number}")
        await FAULTS[fault.kind].strike(
            Harm(self._cluster, node, chance, fault.lasts_s, self._cuts, self._note)
        )
        del self._active[fault.number]
        self._note(f"end of fault {fault.number}: {fault.kind} of broker {node.id}")

    def _may_strike(self, kind: str, node: SimNode) -> bool:
        """Return whether the fault may strike now, beside those that are active."""
        active = self._active.values()
        if len(active) >= _MOST_AT_ONCE:
            return False
        holds = FAULTS[kind].holds
        if holds and any(other is node and FAULTS[each].holds == holds for each, other in active):
            return False
        return not (self._power_losses and FAULTS[kind].endangers_isr)

    async def _strike_with_power_loss(self, fault: DrawnFault, node: SimNode) -> None:
        """Wait until the cluster is sound, then cut the power.

        Kafka acknowledges before it syncs, so a record survives a power loss only if another in-sync replica
        does. So power is lost only by a broker that is alone in no ISR, while all others are well. Until it
        is out of all ISRs, no other fault endangers them.
        """
        self._power_losses += 1
        for _ in range(int(_PATIENCE_S / _LOOK_EVERY_S)):
            if self._may_lose_power(node):
                await self._let_strike(fault, node)
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        else:
            self._note(f"{fault} is skipped")
        self._power_losses -= 1

    def _may_lose_power(self, node: SimNode) -> bool:
        return (
            not any(FAULTS[kind].endangers_isr for kind, _ in self._active.values())
            and all(each.broker.is_running for each in self._cluster.nodes.values())
            and not has_lone_isr(self._cluster.store.tree, node.id)
        )
