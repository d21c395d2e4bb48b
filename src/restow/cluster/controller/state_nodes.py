"""Reads and writes partitions' state znodes, many at a time."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.controller.context import Leadership
from restow.cluster.controller.elections import Choice
from restow.cluster.controller.errors import Deposed
from restow.cluster.controller.guarded import readable
from restow.cluster.store import BadVersion, Create, NodeExists, Set, StoreError, znodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.store import Operation
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class StateNodes:
    """The state znodes, written with this controller's epoch."""

    def __init__(self, store: GuardedStore, epoch: int) -> None:
        self._store = store
        self._epoch = epoch

    async def read(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leadership]:
        """Return the existing states. An unreadable one is logged and left out."""
        wanted = tuple(partitions)
        paths = [znodes.PartitionStateZNode.path(*each) for each in wanted]
        nodes = await self._store.read.get_each(paths)
        found: dict[TopicPartition, Leadership] = {}
        for partition, path, node in zip(wanted, paths, nodes, strict=True):
            state = readable(znodes.PartitionStateZNode.decode, node, path)
            if node is None or state is None:
                continue
            if state.controller_epoch > self._epoch:
                raise Deposed(f"the state of {partition} was written by a later controller")
            found[partition] = Leadership(
                state.leader,
                state.leader_epoch,
                state.isr,
                state.controller_epoch,
                node.stat.version,
                state.leader_recovery_state,
            )
        return found

    async def create(self, choices: Mapping[TopicPartition, Choice]) -> dict[TopicPartition, Leadership]:
        """Write first states. Return those written; partitions that already have a state are left out."""
        parents: dict[str, None] = {}
        for partition in choices:
            parents.update(dict.fromkeys(znodes.PartitionStateZNode.parents(*partition)))
        wanted = {
            partition: Leadership(choice.leader, 0, choice.isr, self._epoch, 0)
            for partition, choice in choices.items()
        }
        transactions: list[tuple[Operation, ...]] = [(Create(path),) for path in parents]
        transactions += [
            (Create(znodes.PartitionStateZNode.path(*partition), _encode(leadership)),)
            for partition, leadership in wanted.items()
        ]
        answers = await self._store.multi_each(transactions)
        for answer in answers[: len(parents)]:
            if isinstance(answer, StoreError) and not isinstance(answer, NodeExists):
                _log.error("a partition's parent znodes were not created: %s", answer)
        created: dict[TopicPartition, Leadership] = {}
        for (partition, leadership), answer in zip(wanted.items(), answers[len(parents) :], strict=True):
            if isinstance(answer, StoreError):
                _log.error("the first state of %s was not written: %s", partition, answer)
            else:
                created[partition] = leadership
        return created

    async def update(
        self, changes: Mapping[TopicPartition, tuple[Leadership, Choice]]
    ) -> tuple[dict[TopicPartition, Leadership], list[TopicPartition]]:
        """Write new leaders or ISRs with the next leader epoch. Also return the conflicts, to retry."""
        wanted = {
            partition: before._replace(
                leader=choice.leader,
                leader_epoch=before.leader_epoch + 1,
                isr=choice.isr,
                controller_epoch=self._epoch,
            )
            for partition, (before, choice) in changes.items()
        }
        return await self.write(wanted)

    async def write(
        self, wanted: Mapping[TopicPartition, Leadership]
    ) -> tuple[dict[TopicPartition, Leadership], list[TopicPartition]]:
        """Write these states over those of their versions. Also return the conflicts."""
        answers = await self._store.multi_each(
            [
                (Set(znodes.PartitionStateZNode.path(*partition), _encode(after), after.version),)
                for partition, after in wanted.items()
            ]
        )
        written: dict[TopicPartition, Leadership] = {}
        stale: list[TopicPartition] = []
        for (partition, after), answer in zip(wanted.items(), answers, strict=True):
            if isinstance(answer, BadVersion):
                stale.append(partition)
            elif isinstance(answer, StoreError):
                _log.error("the state of %s was not written: %s", partition, answer)
            else:
                written[partition] = after._replace(version=after.version + 1)
        return written, stale

    async def raise_epochs(
        self,
        known: Mapping[TopicPartition, Leadership],
        without: Mapping[TopicPartition, Collection[int]] | None = None,
    ) -> dict[TopicPartition, Leadership]:
        """Raise leader epochs and keep leaders and ISRs `without` some members. Retry conflicts."""
        lost = without or {}
        raised: dict[TopicPartition, Leadership] = {}
        found = known
        while found:
            written, stale = await self.update(
                {
                    each: (before, Choice(before.leader, _less(before.isr, lost.get(each, ()))))
                    for each, before in found.items()
                }
            )
            raised |= written
            found = await self.read(stale)
        return raised


def _less(isr: tuple[int, ...], lost: Collection[int]) -> tuple[int, ...]:
    """Return the ISR without lost members; the last one always stays."""
    return tuple(each for each in isr if each not in lost) or isr


def _encode(leadership: Leadership) -> bytes:
    return znodes.PartitionStateZNode(
        leader=leadership.leader,
        leader_epoch=leadership.leader_epoch,
        isr=leadership.isr,
        controller_epoch=leadership.controller_epoch,
        leader_recovery_state=leadership.recovery,
    ).encode()
