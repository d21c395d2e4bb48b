"""The compressions of record batches, as Kafka's clients write and read them.

gzip and zstd are streams. lz4 is a frame of independent blocks, because Java's clients refuse dependent ones.
snappy has two forms, xerial's frames from Java and raw from librdkafka. Both are read; frames are written,
which all clients read.

    xerial   "\\x82SNAPPY\\0", version int32, compatible int32, then per block its length int32 and its bytes
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import cramjam

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

LARGEST_PAYLOAD_BYTES = 64 * 1024 * 1024
"""Largest uncompressed batch. A megabyte of zstd can hold gigabytes, and would take that memory."""

_ZSTD_LEVEL = 3
_XERIAL = struct.Struct(">8sii")
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_VERSION = 1
_XERIAL_BLOCK_BYTES = 32 * 1024
_LENGTH = struct.Struct(">i")
_GROWTH = 8
_SMALLEST_BUFFER_BYTES = 4096
_TOO_SMALL = "failed to write whole buffer"


class UnsupportedCompression(RestowError):
    """An unknown compression."""


class CannotDecompress(RestowError):
    """Bytes that are not in the stated compression, or that would grow too large."""


def compress(payload: bytes, compression: int) -> bytes:
    """Compress the payload. Raises UnsupportedCompression."""
    if compression == NONE:
        return payload
    return _of(compression)[0](payload)


def decompress(payload: bytes, compression: int) -> bytes:
    """Decompress the payload. Raises UnsupportedCompression or CannotDecompress."""
    if compression == NONE:
        return payload
    reader = _of(compression)[1]
    try:
        return reader(payload)
    except (cramjam.DecompressionError, struct.error, ValueError) as error:
        raise CannotDecompress(f"this is not {NAMES[compression]}: {error}") from error


def _of(compression: int) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    if compression not in _CODECS:
        raise UnsupportedCompression(f"there is no compression {compression}, only 0 to {len(NAMES) - 1}")
    return _CODECS[compression]


def _gzip(payload: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(payload))


def _zstd(payload: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(payload, level=_ZSTD_LEVEL))


def _lz4(payload: bytes) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(payload)
    return bytes(compressor.finish())


def _snappy(payload: bytes) -> bytes:
    parts = [_XERIAL.pack(_XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    for begin in range(0, len(payload), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(payload[begin : begin + _XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _from_snappy(payload: bytes) -> bytes:
    if not payload.startswith(_XERIAL_MAGIC):
        return _from_bare_snappy(payload, LARGEST_PAYLOAD_BYTES)
    parts = []
    room = LARGEST_PAYLOAD_BYTES
    position = _XERIAL.size
    while position < len(payload):
        (length,) = _LENGTH.unpack_from(payload, position)
        position += _LENGTH.size
        if length < 0 or position + length > len(payload):
            raise ValueError(f"a block of {length} bytes where {len(payload) - position} are left")
        parts.append(_from_bare_snappy(payload[position : position + length], room))
        room -= len(parts[-1])
        position += length
    return b"".join(parts)


def _from_bare_snappy(block: bytes, room: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > room:
        raise ValueError(f"it would grow past {LARGEST_PAYLOAD_BYTES} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


def _reader_of(library: Any) -> Callable[[bytes], bytes]:
    """Return a reader of streams of unknown length, which uses growing buffers."""

    def read(payload: bytes) -> bytes:
        size = max(_GROWTH * len(payload), _SMALLEST_BUFFER_BYTES)
        while True:
            size = min(size, LARGEST_PAYLOAD_BYTES)
            buffer = bytearray(size)
            try:
                length = library.decompress_into(payload, buffer)
                return bytes(memoryview(buffer)[:length])
            except cramjam.DecompressionError as error:
                if _TOO_SMALL not in str(error):
                    raise
            if size == LARGEST_PAYLOAD_BYTES:
                raise ValueError(f"it would grow past {LARGEST_PAYLOAD_BYTES} bytes")
            size *= _GROWTH

    return read


_CODECS: dict[int, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    GZIP: (_gzip, _reader_of(cramjam.gzip)),
    SNAPPY: (_snappy, _from_snappy),
    LZ4: (_lz4, _reader_of(cramjam.lz4)),
    ZSTD: (_zstd, _reader_of(cramjam.zstd)),
}
