"""Changes of ISRs on their way to the store. At most one per partition is."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from restow.errors import RestowError

if TYPE_CHECKING:
    from restow.cluster.replication.partition import HostedPartition, LeaderAndIsrPartition
    from restow.cluster.replication.values import IsrWriter
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)


class IsrUpdates:
    """Writes what partitions propose. A write whose outcome is not known is tried again."""

    def __init__(self, broker_id: int, writer: IsrWriter, clock: Clock, retry_s: float) -> None:
        self._broker_id = broker_id
        self._writer = writer
        self._clock = clock
        self._retry_s = retry_s
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, partition: HostedPartition) -> None:
        """Begin to write the partition's `proposed_isr`."""
        isr = partition.proposed_isr
        if isr is None:
            return
        log.info("the ISR of %s is to be %s instead of %s", partition.topic_partition, isr, partition.isr)
        task = asyncio.get_running_loop().create_task(self._write(partition, partition.order, isr))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up what is under way."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _write(
        self, partition: HostedPartition, order: LeaderAndIsrPartition, isr: tuple[int, ...]
    ) -> None:
        while partition.is_leader and partition.order is order:
            try:
                version = await self._writer.write(
                    partition.topic_partition,
                    self._broker_id,
                    order.leader_epoch,
                    isr,
                    order.partition_epoch,
                )
            except (RestowError, OSError) as error:
                log.warning("the ISR of %s could not be written: %s", partition.topic_partition, error)
                await self._clock.sleep(self._retry_s)
                continue
            if not partition.is_leader or partition.order is not order:
                return
            if version is not None:
                partition.isr_written(isr, version)
                return
            log.info("the state of %s has changed meanwhile; its ISR stays", partition.topic_partition)
            partition.isr_refused()
            await self._clock.sleep(self._retry_s)
            if partition.order is order:
                partition.consider_joins()
            return
