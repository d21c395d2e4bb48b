"""The CRC without copying is the CRC."""

from __future__ import annotations

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from restow.wire.crc import SKIPPED_BYTES, crc_behind_prefix


@given(st.binary(min_size=SKIPPED_BYTES, max_size=300))
def test_the_first_bytes_do_not_count(data: bytes) -> None:
    assert crc_behind_prefix(data) == google_crc32c.value(data[SKIPPED_BYTES:])
