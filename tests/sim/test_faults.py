"""Faults of a simulated cluster: each strikes and is mended, alone and beside others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from restow.runtime.chance import SeededChance
from restow.sim.cluster import SimCluster, SimulatedClusterSettings
from restow.sim.faults import FAULTS, KINDS, Cuts, Harm
from restow.sim.loop import run
from restow.sim.nemesis import Nemesis, draw_faults
from restow.sim.scenario import Scenario
from restow.sim.states import controller_of

if TYPE_CHECKING:
    from restow.sim.cluster import SimNode

REGISTRATION = "/brokers/ids/1"


@pytest.mark.parametrize("kind", KINDS)
def test_cluster_is_up_again_after_every_fault(kind: str) -> None:
    async def main() -> list[int]:
        async with SimCluster(3, SimulatedClusterSettings(log_dirs=2)) as cluster:
            harm = Harm(cluster, cluster.nodes[1], SeededChance(kind), 5.0, Cuts(cluster), print)
            await FAULTS[kind].strike(harm)
            await asyncio.sleep(60)
            return [each for each in cluster.nodes if cluster.store.tree.find(f"/brokers/ids/{each}")]

    assert run(main()) == [0, 1, 2]


def test_registration_of_a_killed_broker_stays_until_its_session_expires() -> None:
    async def main() -> tuple[bool, bool]:
        async with SimCluster(3) as cluster:
            await cluster.nodes[1].kill()
            await asyncio.sleep(10)
            before = cluster.store.tree.find(REGISTRATION) is not None
            await asyncio.sleep(10)
            return before, cluster.store.tree.find(REGISTRATION) is not None

    assert run(main()) == (True, False)


def test_deposed_controller_has_a_session_while_another_is_elected() -> None:
    async def main() -> tuple[list[int], bool]:
        async with SimCluster(3) as cluster:
            first = cluster.nodes[controller_of(cluster.store.tree)]
            harm = Harm(cluster, first, SeededChance("deposed"), 10.0, Cuts(cluster), print)
            struck = asyncio.create_task(FAULTS["controller-deposed"].strike(harm))
            await asyncio.sleep(0)
            store, writes, number = first.broker.services.store, [], 0
            while not first.clock.is_halted:
                number += 1
                writes.append(asyncio.create_task(store.create(f"/write-{number}")))
                await asyncio.sleep(0.1)
            await asyncio.sleep(5)
            epochs = sorted(node.broker.services.controller.epoch for node in cluster.nodes.values())
            is_registered = cluster.store.tree.find(f"/brokers/ids/{first.id}") is not None
            await struck
            await asyncio.gather(*writes)
            return epochs, is_registered

    assert run(main()) == ([-1, 1, 2], True)


def test_fault_at_a_write_strikes_before_the_answer() -> None:
    async def main() -> tuple[bool, bool]:
        async with SimCluster(3) as cluster:
            node = cluster.nodes[1]
            writing = asyncio.create_task(node.broker.services.store.create("/write"))
            await node.store.changes(1)
            is_answered = writing.done()
            await writing
            return cluster.store.tree.find("/write") is not None, is_answered

    assert run(main()) == (True, False)


def test_link_that_two_faults_cut_is_mended_with_the_second() -> None:
    async def main() -> list[bool]:
        async with SimCluster(2) as cluster:
            cuts, link = Cuts(cluster), [("broker-0", "broker-1")]
            wire = cluster.network.wire(*link[0])
            cuts.add(link)
            cuts.add(link)
            cuts.remove(link)
            first = wire.is_cut
            cuts.remove(link)
            return [first, wire.is_cut]

    assert run(main()) == [True, False]


def test_leaving_out_a_fault_changes_no_other() -> None:
    scenario = Scenario(seed=3, fault_every_s=5)
    assert len(draw_faults(scenario)) > 5
    assert draw_faults(scenario) == draw_faults(Scenario(seed=3, fault_every_s=5, without_faults=(1,)))


def test_faults_that_are_left_out_do_not_strike() -> None:
    async def struck(*without: int) -> int:
        async with SimCluster(5) as cluster:
            scenario = Scenario(seed=3, fault_every_s=20, without_faults=without, faults=("clock", "reset"))
            nemesis = Nemesis(cluster, scenario, print)
            await nemesis.harm()
            return nemesis.count

    assert run(struck()) == run(struck(0)) + 1


def test_power_is_lost_only_while_no_other_fault_endangers_an_isr() -> None:
    async def main() -> list[str]:
        notes: list[str] = []
        async with SimCluster(5) as cluster:
            scenario = Scenario(seed=2, fault_every_s=3, faults=("power-loss", "kill", "store-cut"))
            await Nemesis(cluster, scenario, notes.append).harm()
        return notes

    active: dict[str, str] = {}
    together = []
    for note in run(main()):
        if note.startswith("fault ") and not note.endswith("skipped"):
            number, _, what = note.removeprefix("fault ").partition(": ")
            active[number] = what.partition(" ")[0]
            together.append(tuple(active.values()))
        elif note.startswith("end of fault "):
            del active[note.removeprefix("end of fault ").partition(":")[0]]
    assert ("power-loss",) in together
    assert not any("power-loss" in each and len(each) > 1 for each in together)


def test_slow_disk_halts_the_node_as_long_as_its_calls_take() -> None:
    async def main() -> tuple[bool, bool]:
        async with SimCluster(2) as cluster:
            node: SimNode = cluster.nodes[1]
            node.disk.volume(node.log_dirs[0]).slow_s = 0.02
            for _ in range(5):
                node.disk.exists(node.log_dirs[0])
            node.disk.volume(node.log_dirs[0]).mend()
            await asyncio.sleep(0.09)
            during = node.clock.is_halted
            await asyncio.sleep(0.02)
            return during, node.clock.is_halted

    assert run(main()) == (True, False)
