"""The partition of `__consumer_offsets`, and so the broker, that coordinates a group."""

from __future__ import annotations

_INT32_MASK = 0xFFFF_FFFF


def partition_of_group(group_id: str, partitions: int) -> int:
    """Return the partition as in Kafka: Java's hash of the name, made positive, modulo the count."""
    return _absolute(java_string_hash(group_id)) % partitions


def java_string_hash(text: str) -> int:
    """Compute `String.hashCode`: over UTF-16 code units, in 32 bits with a sign."""
    hashed = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & _INT32_MASK
    return hashed - (1 << 32) if hashed & 0x8000_0000 else hashed


def _absolute(number: int) -> int:
    """Compute Kafka's `Utils.abs`: the smallest int32 has no counterpart and becomes 0."""
    return 0 if number == -(1 << 31) else abs(number)
