"""Watch whatever moves on a cluster, whoever began it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.lock import holder_of
from restow.execute.progress import Progress
from restow.execute.sight import look
from restow.execute.standing import Standing
from restow.model import ReplicaAssignment, Step

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from restow.execute.sight import Sight
    from restow.execute.start import World
    from restow.model import TopicPartition

_STALL_S = 30.0


async def watch(world: World, every_s: float) -> AsyncGenerator[Standing, None]:
    """Where things stand, again and again, for as long as the caller wants to know.

    What was there at the first look and what has begun since is what is to be done.
    """
    progress = Progress(_STALL_S)
    known: dict[TopicPartition, Step] = {}
    done = 0
    while True:
        sight = await look(world.admin, world.clock)
        now = steps_under_way(sight)
        for name, step in tuple(known.items()):
            if name not in now:
                done += 1
                progress.finish(known.pop(name))
            elif now[name].after != step.after:
                progress.forget([known.pop(name)])
        fresh = {name: step for name, step in now.items() if name not in known}
        progress.expect(fresh.values())
        known.update(fresh)
        holder = holder_of(world.disk, (await world.runs()).folder)
        yield Standing(
            run="" if holder is None else holder.run,
            report=progress.report(sight, known.values()),
            steps_done=done,
            steps_left=len(known),
            under_way=len(known),
            throttle=None,
            auto=False,
            paused=None,
            waits=None,
            under_replicated=len(sight.under_replicated),
            offline=len(sight.offline),
            latency_s=sight.latency_s,
        )
        await world.clock.sleep(every_s)


def steps_under_way(sight: Sight) -> dict[TopicPartition, Step]:
    """The reassignments that the controller is carrying out, as steps."""
    found = {}
    for name, move in sight.moves.items():
        moving = ReplicaAssignment(move.replicas, move.adding, move.removing)
        found[name] = Step(
            partition=name, before=moving.origin, after=moving.target, size_bytes=sight.size_of(name)
        )
    return found
