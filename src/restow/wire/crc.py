"""CRC-32C of the rest of a buffer, without copying the rest.

The library takes whole `bytes` objects only, and a batch's CRC leaves out its first 21 bytes. Cutting
those off would copy the batch, which for a large one takes longer than its CRC. But a CRC can be
begun in any state, and its steps can be gone backwards: we begin in the one state from which the 21
bytes lead to where a CRC normally begins, and let the library run over the whole.
"""

from __future__ import annotations

import google_crc32c

SKIPPED_BYTES = 21

_POLYNOMIAL = 0x82F63B78
_ALL_ONES = 0xFFFFFFFF


def crc_behind_prefix(data: bytes) -> int:
    """The CRC-32C of all but the first 21 bytes, of which there must be so many."""
    state: int = google_crc32c.extend(_ALL_ONES, data[:SKIPPED_BYTES])
    low, middle, high, top = _BACK
    begin = low[state & 255] ^ middle[state >> 8 & 255] ^ high[state >> 16 & 255] ^ top[state >> 24]
    value: int = google_crc32c.extend(begin ^ _ALL_ONES, data)
    return value


def _steps() -> list[int]:
    """What each value of the lowest byte adds to the state when a byte of zeros is taken in."""
    table = []
    for value in range(256):
        state = value
        for _ in range(8):
            state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return table


def _tables_back() -> tuple[list[int], ...]:
    """For each byte of a state, what it was 21 bytes of zeros ago: the map is linear, so they add up."""
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
