"""Leadership for first replicas, a few at a time: each election moves clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.execute.under_way import partitions_now

if TYPE_CHECKING:
    from restow.client import Admin
    from restow.execute.book import Book
    from restow.execute.standing import Tell
    from restow.model import Partition, TopicPartition


class Elections:
    """Partitions that should be led by their first replica."""

    def __init__(self, admin: Admin, book: Book, at_once: int, tell: Tell) -> None:
        self._admin, self._book, self._at_once, self._tell = admin, book, at_once, tell
        self.waiting: list[TopicPartition] = []

    async def hold(self) -> None:
        """Those whose turn it is, as far as they need it and can."""
        some = self.waiting[: self._at_once]
        if not some:
            return
        now = await partitions_now(self._admin, (name.topic for name in some))
        self.waiting = self.waiting[len(some) :]
        due = [name for name in some if name in now and may_be_elected(now[name])]
        if not due:
            return
        self._book.write("elect", leaders=[[*name, now[name].leader] for name in due])
        for name, error in (await self._admin.elect_preferred(due)).items():
            if error is None:
                self._tell("elected", partition=str(name), leader=now[name].replicas[0])
            else:
                self._tell("not elected", partition=str(name), why=str(error))


def may_be_elected(partition: Partition) -> bool:
    """Whether another than its first replica leads, and that one could."""
    first = partition.replicas[0]
    return partition.leader != first and first in partition.isr
