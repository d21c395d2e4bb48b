"""CRC-32C of the rest of a buffer, without copying the rest.

The library takes only whole `bytes` objects, and a batch's CRC leaves out its first 21 bytes. Slicing would
copy the batch, which for a large one takes longer than its CRC. But a CRC can start in any state, and its
steps can be reversed: we start in the one state that the 21 bytes turn into a CRC's normal start state, and
let the library process everything.
"""

from __future__ import annotations

import google_crc32c

SKIPPED_BYTES = 21

_POLYNOMIAL = 0x82F63B78
_ALL_ONES = 0xFFFFFFFF


def crc_behind_prefix(data: bytes) -> int:
    """Return the CRC-32C of all but the first 21 bytes, which must exist."""
    state: int = google_crc32c.extend(_ALL_ONES, data[:SKIPPED_BYTES])
    low, middle, high, top = _BACK
    begin = low[state & 255] ^ middle[state >> 8 & 255] ^ high[state >> 16 & 255] ^ top[state >> 24]
    value: int = google_crc32c.extend(begin ^ _ALL_ONES, data)
    return value


def _steps() -> list[int]:
    """Return what each lowest byte adds to the state when a zero byte is processed."""
    table = []
    for value in range(256):
        state = value
        for _ in range(8):
            state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return table


def _tables_back() -> tuple[list[int], ...]:
    """Return, for each byte of a state, its value 21 zero bytes earlier. The map is linear, so they add."""
    steps = _steps()
    lowest_byte = {step >> 24: value for value, step in enumerate(steps)}

    def back(state: int) -> int:
        for _ in range(SKIPPED_BYTES):
            value = lowest_byte[state >> 24]
            state = (state ^ steps[value]) << 8 & _ALL_ONES | value
        return state

    bits = [back(1 << bit) for bit in range(32)]
    tables = []
    for byte in range(4):
        table = [0]
        for bit in bits[8 * byte : 8 * byte + 8]:
            table += [entry ^ bit for entry in table]
        tables.append(table)
    return tuple(tables)


_BACK = _tables_back()
