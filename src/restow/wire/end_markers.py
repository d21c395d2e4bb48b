"""Control batches that end transactions: one record that says commit or abort.

Its key is a version and the kind, its value a version and the epoch of the coordinator that wrote it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from restow.wire.batches import CONTROL_BIT, TRANSACTIONAL_BIT, CorruptBatch
from restow.wire.records import Record, build, each_record

if TYPE_CHECKING:
    from restow.wire.primitives import Buffer

_VERSION = 0
_ABORT, _COMMIT = 0, 1
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class EndMarker(NamedTuple):
    """How a transaction ended, and the epoch of its coordinator."""

    commits: bool
    coordinator_epoch: int


def build_end_marker(producer_id: int, producer_epoch: int, marker: EndMarker, timestamp_ms: int) -> bytes:
    """Return the batch that ends a producer's transaction."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.commits else _ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    return build(
        [Record(0, timestamp_ms, key, value)],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=TRANSACTIONAL_BIT | CONTROL_BIT,
    )


def end_marker_of(batch: Buffer) -> EndMarker | None:
    """Return the marker in a control batch; None for control records of another kind.

    Later versions may have more fields behind these.
    """
    record = next(each_record(batch), None)
    if record is None:
        return None
    try:
        version, kind = _KEY.unpack_from(record.key or b"")
        if version < 0 or kind not in (_ABORT, _COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except struct.error as error:
        raise CorruptBatch(f"a control record at offset {record.offset} is cut off") from error
    return EndMarker(kind == _COMMIT, coordinator_epoch)
