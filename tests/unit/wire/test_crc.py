"""The CRC without a copy equals the library's CRC."""

from __future__ import annotations

import google_crc32c
from hypothesis import given
from hypothesis import strategies as st

from restow.wire.crc import SKIPPED_BYTES, crc_behind_prefix


@given(st.binary(min_size=SKIPPED_BYTES, max_size=300))
def test_crc_behind_prefix_ignores_the_first_bytes(data: bytes) -> None:
    assert crc_behind_prefix(data) == google_crc32c.value(data[SKIPPED_BYTES:])
