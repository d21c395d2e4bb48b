"""Random faults: their kinds, their targets and their durations.

A seed draws a few kinds of faults and their frequency (a swarm), so that runs differ more than if every run
had all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from restow.runtime.chance import Chance
    from restow.sim.cluster import SimCluster, SimNode

_LONGEST_S = 40
_HEAL_S = 1.0


class Harm(NamedTuple):
    """One fault: its target and duration."""

    cluster: SimCluster
    node: SimNode
    chance: Chance
    lasts_s: float


class Nemesis:
    """Causes faults in a cluster until it is stopped; then it repairs everything."""

    def __init__(
        self,
        cluster: SimCluster,
        chance: Chance,
        kinds: Collection[str],
        tell: Callable[[str], None],
        *,
        every_s: float = 30.0,
    ) -> None:
        self._cluster, self._chance, self._tell, self._every_s = cluster, chance, tell, every_s
        allowed = sorted(kinds)
        drawn = [kind for kind in allowed if chance.randrange(3)]
        self._kinds = drawn or allowed
        self.count = 0

    async def harm(self, until_s: float) -> None:
        """Cause one fault after the other until that virtual time."""
        loop = asyncio.get_running_loop()
        while self._kinds:
            await asyncio.sleep(self._every_s * (500 + self._chance.randrange(1000)) / 1000)
            left_s = until_s - loop.time()
            if left_s <= 0:
                return
            kind = self._kinds[self._chance.randrange(len(self._kinds))]
            node = self._cluster.nodes[self._chance.randrange(len(self._cluster.nodes))]
            lasts_s = min(left_s, self._chance.randrange(_LONGEST_S * 1000) / 1000)
            self._tell(f"{kind} of broker {node.id} for {lasts_s:.1f} s")
            self.count += 1
            await _FAULTS[kind](Harm(self._cluster, node, self._chance, lasts_s))
            self._tell(f"end of {kind} of broker {node.id}")


async def _kill(it: Harm) -> None:
    await it.node.kill()
    await asyncio.sleep(it.lasts_s)
    await it.node.start()


async def _stop(it: Harm) -> None:
    await it.node.stop()
    await asyncio.sleep(it.lasts_s)
    await it.node.start()


async def _halt(it: Harm) -> None:
    it.node.halt()
    await asyncio.sleep(it.lasts_s)
    it.node.go_on()


async def _isolate(it: Harm) -> None:
    """Cut a broker off from some of the others, in both directions or in one."""
    others = [
        each.host for each in it.cluster.nodes.values() if each is not it.node and it.chance.randrange(3)
    ]
    direction = it.chance.randrange(3)
    for other in others:
        if direction != 1:
            it.cluster.network.cut(it.node.host, other)
        if direction != 2:
            it.cluster.network.cut(other, it.node.host)
    await asyncio.sleep(it.lasts_s)
    it.cluster.network.mend()


async def _cut_off_from_store(it: Harm) -> None:
    it.node.store.cut()
    await asyncio.sleep(it.lasts_s)
    it.node.store.mend()


async def _lose_answers(it: Harm) -> None:
    it.node.store.lose_answers(1 + it.chance.randrange(3))
    await asyncio.sleep(it.lasts_s)
    it.node.store.lose_answers(0)


async def _reset(it: Harm) -> None:
    it.cluster.network.reset(it.node.host)
    await asyncio.sleep(_HEAL_S)


async def _set_clock(it: Harm) -> None:
    by_ms = (it.chance.randrange(7_200) - 3_600) * 1000
    it.node.clock.jump(by_ms)
    await asyncio.sleep(it.lasts_s)
    it.node.clock.jump(-by_ms)


_FAULTS: Mapping[str, Callable[[Harm], Awaitable[None]]] = {
    "kill": _kill,
    "stop": _stop,
    "halt": _halt,
    "isolate": _isolate,
    "store-cut": _cut_off_from_store,
    "store-answers-lost": _lose_answers,
    "reset": _reset,
    "clock": _set_clock,
}
KINDS = tuple(_FAULTS)
"""Every kind of fault by name."""
