"""What can go wrong, by name. Each fault strikes, lasts for a while, and mends what it broke.

    processes    kill, stop, halt, controller-kill, controller-kill-at-write, controller-deposed, power-loss
    network      isolate (both directions), isolate-in, isolate-out, isolate-clients,
                 slow-link, lossy-link, reset, half-open, silent, late-data
    store        store-cut, store-slow, store-answers-lost, session-expiry
    disks        disk-full, disk-failed, disk-gone, disk-slow
    time         clock

A new fault is one coroutine and one entry in `FAULTS`; `sim/nemesis.py` draws when and where it strikes.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.store.errors import NoNode
from restow.cluster.store.znodes import ControllerZNode
from restow.sim.network import Wire
from restow.sim.states import controller_of, isr_members
from restow.sim.store import LATENCY_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from restow.runtime.chance import Chance
    from restow.sim.cluster import SimCluster, SimNode

_LOOK_EVERY_S = 0.1
_POWER_SETTLES_S = 60.0
_SLOWEST_LINK_MS = 500
_SLOWEST_LINK_BYTES_PER_S = 20_000
_LONGEST_RETRANSMISSION_MS = 2_000
_MOST_ROOM_BYTES = 20_000
_SLOWEST_DISK_MS = 40
_LARGEST_CLOCK_JUMP_S = 3_600
_MOST_WRITES = 8
_SLOWEST_STORE_MS = 300
_DEPOSED_S = 12.0
"""Shorter than a session, so that the deposed controller still has one."""


class Cuts:
    """Cut directions of links. Several faults may cut the same one; it is mended with the last of them."""

    def __init__(self, cluster: SimCluster) -> None:
        self._network = cluster.network
        self._cut: Counter[tuple[str, str]] = Counter()

    def add(self, directions: Iterable[tuple[str, str]]) -> None:
        for source, target in directions:
            self._cut[source, target] += 1
            self._network.cut(source, target)

    def remove(self, directions: Iterable[tuple[str, str]]) -> None:
        for source, target in directions:
            self._cut[source, target] -= 1
            if not self._cut[source, target]:
                self._network.wire(source, target).is_cut = False
                self._network.deliver(target)


class Harm(NamedTuple):
    """One fault: its target, its duration and what it may use."""

    cluster: SimCluster
    node: SimNode
    chance: Chance
    lasts_s: float
    cuts: Cuts
    note: Callable[[str], None]


class Fault(NamedTuple):
    """A kind of fault."""

    strike: Callable[[Harm], Awaitable[None]]
    holds: str = ""
    """What of the node it needs for itself: its process, its store connection, its links or its clock."""
    endangers_isr: bool = True
    """Whether the node may drop out of an ISR, or of the cluster, because of it."""


# Processes


async def _kill(it: Harm) -> None:
    await it.node.kill()
    await asyncio.sleep(it.lasts_s)
    await it.node.start_until_up(it.note)


async def _stop(it: Harm) -> None:
    await it.node.stop()
    await asyncio.sleep(it.lasts_s)
    await it.node.start_until_up(it.note)


async def _halt(it: Harm) -> None:
    it.node.halt()
    await asyncio.sleep(it.lasts_s)
    it.node.go_on()


async def _happens_at_write(it: Harm) -> bool:
    """Wait until the node has written a few times; return whether it has, within the time of the fault."""
    try:
        await asyncio.wait_for(it.node.store.changes(1 + it.chance.randrange(_MOST_WRITES)), it.lasts_s)
    except TimeoutError:
        return False
    return it.node.broker.is_running


async def _kill_at_write(it: Harm) -> None:
    """Kill the process between a write to the store and whatever it would do next."""
    if await _happens_at_write(it):
        await _kill(it)


async def _depose(it: Harm) -> None:
    """Halt the controller after a write, and let another be elected while the session of the first lives.

    An operator who deletes `/controller` does that. Then the first one goes on where it was.
    """
    if not await _happens_at_write(it):
        return
    it.node.halt()
    session = it.cluster.store.session()
    with suppress(NoNode):
        await session.delete(ControllerZNode.PATH)
    await session.close()
    await asyncio.sleep(min(it.lasts_s, _DEPOSED_S))
    it.node.go_on()


async def _lose_power(it: Harm) -> None:
    """Cut the power, and wait until the controller has taken the broker out of every ISR.

    Before that, no other fault may strike (`Nemesis`): Kafka acknowledges before it syncs, so records survive
    only if another in-sync replica does. And the controller's own machine stays without power so long: the
    next controller finds a broker that is back already, and cannot know that it was away.
    """
    left = isr_members(it.cluster.store.tree, it.node.id)
    was_controller = controller_of(it.cluster.store.tree) == it.node.id
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await it.node.lose_power()
    start = None if was_controller else asyncio.create_task(_start_later(it))
    while left and loop.time() < began_s + _POWER_SETTLES_S:
        await asyncio.sleep(_LOOK_EVERY_S)
        now = isr_members(it.cluster.store.tree, it.node.id)
        left = {key: epoch for key, epoch in left.items() if now.get(key, -1) == epoch}
    await (start or _start_later(it))


async def _start_later(it: Harm) -> None:
    await asyncio.sleep(it.lasts_s)
    await it.node.start_until_up(it.note)


# Network


def _directions(it: Harm, hosts: Iterable[str], *, incoming: bool, outgoing: bool) -> list[tuple[str, str]]:
    here = it.node.host
    return [
        each
        for host in hosts
        for each, wanted in (((here, host), outgoing), ((host, here), incoming))
        if wanted
    ]


def _some_others(it: Harm) -> list[str]:
    """Return the hosts of about two thirds of the other brokers, at least one."""
    others = [each.host for each in it.cluster.nodes.values() if each is not it.node]
    return [each for each in others if it.chance.randrange(3)] or others[:1]


async def _cut(it: Harm, directions: list[tuple[str, str]]) -> None:
    it.cuts.add(directions)
    await asyncio.sleep(it.lasts_s)
    it.cuts.remove(directions)


async def _isolate(it: Harm) -> None:
    await _cut(it, _directions(it, _some_others(it), incoming=True, outgoing=True))


async def _isolate_in(it: Harm) -> None:
    await _cut(it, _directions(it, _some_others(it), incoming=True, outgoing=False))


async def _isolate_out(it: Harm) -> None:
    await _cut(it, _directions(it, _some_others(it), incoming=False, outgoing=True))


async def _isolate_clients(it: Harm) -> None:
    brokers = {each.host for each in it.cluster.nodes.values()}
    clients = [host for host in it.cluster.network.clocks if host not in brokers]
    await _cut(it, _directions(it, clients, incoming=True, outgoing=True))


async def _change_wires(it: Harm, **settings: float) -> None:
    hosts = _some_others(it)
    wires = [it.cluster.network.wire(*each) for each in _directions(it, hosts, incoming=True, outgoing=True)]
    before = Wire()
    for wire in wires:
        for name, value in settings.items():
            setattr(wire, name, value)
    await asyncio.sleep(it.lasts_s)
    for wire in wires:
        for name in settings:
            setattr(wire, name, getattr(before, name))


async def _slow_link(it: Harm) -> None:
    latency_s = (1 + it.chance.randrange(_SLOWEST_LINK_MS)) / 1000
    bytes_per_s = _SLOWEST_LINK_BYTES_PER_S * (1 + it.chance.randrange(50))
    await _change_wires(it, latency_s=latency_s, bytes_per_s=bytes_per_s)


async def _lossy_link(it: Harm) -> None:
    """Lose packets: TCP sends them again, so data comes late and in bursts, but in order."""
    await _change_wires(it, jitter_s=(1 + it.chance.randrange(_LONGEST_RETRANSMISSION_MS)) / 1000)


async def _reset(it: Harm) -> None:
    it.cluster.network.reset(it.node.host)


async def _half_open(it: Harm) -> None:
    it.cluster.network.half_open(it.node.host)


async def _silent(it: Harm) -> None:
    it.cluster.network.silence(it.node.host)


async def _late_data(it: Harm) -> None:
    """Keep back what the present connections carry. Half way the senders give up and connect again.

    So a request arrives, and perhaps later ones, before its first copy does.
    """
    held = it.cluster.network.hold(it.node.host)
    await asyncio.sleep(it.lasts_s / 2)
    for end in held:
        if not end.is_accepted:
            end.forget()
    await asyncio.sleep(it.lasts_s / 2)
    it.cluster.network.release(held)


# The store


async def _cut_off_from_store(it: Harm) -> None:
    it.node.store.cut()
    await asyncio.sleep(it.lasts_s)
    it.node.store.mend()


async def _slow_store(it: Harm) -> None:
    it.node.store.latency_s = (1 + it.chance.randrange(_SLOWEST_STORE_MS)) / 1000
    await asyncio.sleep(it.lasts_s)
    it.node.store.latency_s = LATENCY_S


async def _lose_answers(it: Harm) -> None:
    it.node.store.lose_answers(1 + it.chance.randrange(3))
    await asyncio.sleep(it.lasts_s)
    it.node.store.lose_answers(0)


async def _expire_session(it: Harm) -> None:
    it.node.store.expire()


# Disks


async def _harm_disk(it: Harm, harm: Callable[[str], None]) -> None:
    """Harm one log dir. An offline log dir comes back only with a restart of the broker."""
    path = it.node.log_dirs[it.chance.randrange(len(it.node.log_dirs))]
    harm(path)
    await asyncio.sleep(it.lasts_s)
    it.node.disk.volume(path).mend()
    broker = it.node.broker
    if not broker.is_running or broker.services.logs.offline:
        await it.node.kill()
        await it.node.start_until_up(it.note)


async def _disk_full(it: Harm) -> None:
    await _harm_disk(it, lambda path: it.node.disk.fill(path, it.chance.randrange(_MOST_ROOM_BYTES)))


async def _disk_failed(it: Harm) -> None:
    def fail(path: str) -> None:
        it.node.disk.volume(path).error = errno.EIO

    await _harm_disk(it, fail)


async def _disk_gone(it: Harm) -> None:
    def vanish(path: str) -> None:
        it.node.disk.volume(path).error = errno.ENOENT

    await _harm_disk(it, vanish)


async def _disk_slow(it: Harm) -> None:
    def slow_down(path: str) -> None:
        it.node.disk.volume(path).slow_s = (1 + it.chance.randrange(_SLOWEST_DISK_MS)) / 1000

    await _harm_disk(it, slow_down)


# Time


async def _set_clock(it: Harm) -> None:
    by_ms = (it.chance.randrange(2 * _LARGEST_CLOCK_JUMP_S) - _LARGEST_CLOCK_JUMP_S) * 1000
    it.node.clock.jump(by_ms)
    await asyncio.sleep(it.lasts_s)
    it.node.clock.jump(-by_ms)


FAULTS: Mapping[str, Fault] = {
    "kill": Fault(_kill, "process"),
    "stop": Fault(_stop, "process"),
    "halt": Fault(_halt, "process"),
    "controller-kill": Fault(_kill, "process"),
    "controller-kill-at-write": Fault(_kill_at_write, "process"),
    "controller-deposed": Fault(_depose, "process"),
    "power-loss": Fault(_lose_power, "process"),
    "isolate": Fault(_isolate),
    "isolate-in": Fault(_isolate_in),
    "isolate-out": Fault(_isolate_out),
    "isolate-clients": Fault(_isolate_clients, endangers_isr=False),
    "slow-link": Fault(_slow_link, "links"),
    "lossy-link": Fault(_lossy_link, "links"),
    "reset": Fault(_reset, endangers_isr=False),
    "half-open": Fault(_half_open, endangers_isr=False),
    "silent": Fault(_silent, endangers_isr=False),
    "late-data": Fault(_late_data),
    "store-cut": Fault(_cut_off_from_store, "store"),
    "store-slow": Fault(_slow_store, "store"),
    "store-answers-lost": Fault(_lose_answers, "store"),
    "session-expiry": Fault(_expire_session, "process"),
    "disk-full": Fault(_disk_full, "process"),
    "disk-failed": Fault(_disk_failed, "process"),
    "disk-gone": Fault(_disk_gone, "process"),
    "disk-slow": Fault(_disk_slow, "process"),
    "clock": Fault(_set_clock, "clock", endangers_isr=False),
}
KINDS = tuple(FAULTS)
"""Every kind of fault by name."""


def target_of(kind: str, cluster: SimCluster, drawn: SimNode) -> SimNode:
    """Return the node that the fault strikes: the drawn one, or the controller."""
    if kind.startswith("controller-"):
        return cluster.nodes.get(controller_of(cluster.store.tree), drawn)
    return drawn
