"""A log behaves like a plain list under random operations."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from restow.cluster.log import EpochEndOffset, LogConfig, PartitionLog
from restow.cluster.log.errors import OffsetOutOfRange, UnexpectedOffset
from restow.wire.batches import scan
from restow.wire.records import Record, build
from tests.unit.log.making import open_log, read_all


class Kept(NamedTuple):
    """A batch of the model."""

    first: int
    last: int
    epoch: int
    data: bytes


class LogAsList(RuleBasedStateMachine):
    """Batches in a list on one side, a PartitionLog on the other."""

    @initialize(segment_bytes=st.sampled_from([200, 700, 1 << 20]), interval=st.sampled_from([0, 100, 4096]))
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log: PartitionLog = open_log(self.folder / "t-0", self.config)
        self.batches: list[Kept] = []
        self.start = self.end = self.epoch = 0

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.release()
            shutil.rmtree(self.folder)

    def _append(self, sizes: list[int], base: int) -> bytes:
        """Return batches as a producer or leader sends them, and add them to the model."""
        sent = b""
        for number, size in enumerate(sizes):
            records = [Record(base + i, 1000 + base + i, b"k", b"x" * size) for i in range(number + 1)]
            data = build(records, leader_epoch=self.epoch)
            self.batches.append(Kept(base, records[-1].offset, self.epoch, data))
            base = self.end = records[-1].offset + 1
            sent += data
        return sent

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4))
    def append_as_leader(self, sizes: list[int]) -> None:
        first = self.end
        info = self.log.append_as_leader(self._append(sizes, self.end), self.epoch, 5, from_client=False)
        assert (info.first_offset, info.last_offset, info.duplicate) == (first, self.end - 1, False)

    @rule(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=4), gap=st.integers(0, 3))
    def append_as_follower(self, sizes: list[int], gap: int) -> None:
        self.log.append_as_follower(self._append(sizes, self.end + gap))

    @precondition(lambda self: self.end > 0)
    @rule(back=st.integers(1, 3))
    def refuse_what_is_there(self, back: int) -> None:
        with pytest.raises(UnexpectedOffset):
            self.log.append_as_follower(build([Record(max(0, self.end - back), 1, b"k", b"v")]))

    @rule()
    def next_epoch(self) -> None:
        self.epoch += 1

    @rule(share=st.floats(0, 1), max_bytes=st.integers(0, 900), upto_share=st.floats(0, 1))
    def read(self, share: float, max_bytes: int, upto_share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        upto = self.start + round(upto_share * (self.end - self.start))
        found = self.log.read(offset, max_bytes, upto)
        visible = [batch for batch in self.batches if batch.last >= offset and batch.last < upto]
        assert b"".join(batch.data for batch in visible).startswith(found)
        if visible and offset < upto:
            assert len(found) <= max(max_bytes, len(visible[0].data))
            assert found.startswith(visible[0].data)
            assert self.log.read(offset, len(visible[0].data) - 1, upto, min_one=False) == b""
        else:
            assert found == b""
        assert sum(header.size for _, header in scan(found)) == len(found)

    @rule(beyond=st.integers(1, 5))
    def read_outside(self, beyond: int) -> None:
        for offset in (self.start - beyond, self.end + beyond):
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, 100)

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.truncate_to(offset)
        cut = [batch for batch in self.batches if batch.last >= offset]
        self.batches = [batch for batch in self.batches if batch.last < offset]
        self.end = min(self.end, offset, *(batch.first for batch in cut))
        self.start = min(self.start, self.end)

    @rule(ahead=st.integers(0, 10))
    def start_over(self, ahead: int) -> None:
        self.log.truncate_fully_and_start_at(self.end + ahead)
        self.batches = []
        self.start = self.end = self.end + ahead

    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = self.start + round(share * (self.end - self.start))
        self.log.high_watermark = self.end
        self.log.delete_records_before(offset)
        self.start = offset
        self.batches = [batch for batch in self.batches if batch.last >= offset]

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = open_log(self.folder / "t-0", self.config, start_offset=self.start)

    @rule(flushed=st.booleans())
    def crash_and_reopen(self, flushed: bool) -> None:
        if flushed:
            self.log.flush()
        point = self.log.recovery_point
        self.log.release()
        self.log = open_log(self.folder / "t-0", self.config, recovery_point=point, start_offset=self.start)

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        expected = [offset for batch in self.batches for offset in range(batch.first, batch.last + 1)]
        found = [record.offset for record in read_all(self.log)]
        assert found == [offset for offset in expected if offset >= self.start]
        assert sum(segment.size for segment in self.log.segments) == self.log.size_bytes

    @invariant()
    def same_epochs(self) -> None:
        if not hasattr(self, "log"):
            return
        for epoch in {batch.epoch for batch in self.batches}:
            later = [batch.first for batch in self.batches if batch.epoch > epoch]
            found = self.log.epochs.end_offset_for(epoch, self.log.end_offset)
            last = max(batch.last for batch in self.batches if batch.epoch == epoch)
            assert found.epoch == epoch
            assert last < found.end_offset <= (later[0] if later else self.end)
        assert self.log.epochs.end_offset_for(self.epoch + 1, self.end) == EpochEndOffset(-1, -1)


TestLogAsList = LogAsList.TestCase
TestLogAsList.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
