"""The transactional ids of one `__transaction_state` partition, loaded while this broker leads it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow.cluster.groups.fields import InvalidGroupRecord
from restow.cluster.groups.journal import JournalWriter
from restow.cluster.transactions.records import decode_key, decode_value
from restow.cluster.transactions.transaction import Transaction

if TYPE_CHECKING:
    from restow.cluster.groups.journal import RecordJournal

log = logging.getLogger(__name__)


class TransactionShard:
    """Transactional ids that are stored in the same partition. `epoch` is that of the partition's leader."""

    def __init__(self, partition: int, epoch: int, journal: RecordJournal) -> None:
        self.partition = partition
        self.epoch = epoch
        self.transactions: dict[str, Transaction] = {}
        self.is_loading = True
        self.is_closed = False
        self.writer = JournalWriter(partition, journal)
        self._journal = journal

    async def load(self) -> None:
        """Read everything; the last record of a transactional id counts."""
        async for record in self._journal.read_all(self.partition):
            if self.is_closed:
                return
            try:
                self._replay(record.key, record.value)
            except InvalidGroupRecord as error:
                log.warning(
                    "skipped record %d of __transaction_state-%d: %s", record.offset, self.partition, error
                )
        self.is_loading = False

    def _replay(self, key: bytes | None, value: bytes | None) -> None:
        if key is None:
            raise InvalidGroupRecord("it has no key")
        transactional_id = decode_key(key)
        if transactional_id is None:
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = Transaction(transactional_id, decode_value(value))

    def close(self) -> None:
        """Forget everything; writes that wait are refused."""
        self.is_closed = True
        self.writer.close()
        self.transactions.clear()
