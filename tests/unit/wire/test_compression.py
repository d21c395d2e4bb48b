"""Compressions: compatible with each library in both directions; anything else is refused."""

from __future__ import annotations

import contextlib
import gzip

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec

from restow.wire import compression as module
from restow.wire.compression import (
    GZIP,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    ZSTD,
    CannotDecompress,
    UnsupportedCompression,
    compress,
    decompress,
)

payloads = st.binary(max_size=500) | st.builds(bytes.__mul__, st.binary(max_size=40), st.integers(0, 5000))
kinds = st.sampled_from(range(len(NAMES)))


def _zstd_stream(payload: bytes) -> bytes:
    """Compress as a stream without a stated length."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(payload) + stream.flush()


THEIRS = {
    "gzip": (GZIP, gzip.compress, gzip.decompress),
    "bare snappy": (SNAPPY, snappy.compress, None),
    "framed snappy": (SNAPPY, codec.snappy_encode, codec.snappy_decode),
    "lz4": (LZ4, lz4.frame.compress, lz4.frame.decompress),
    "zstd": (ZSTD, zstandard.compress, zstandard.ZstdDecompressor().decompress),
    "zstd stream": (ZSTD, _zstd_stream, None),
}


@given(payloads, kinds)
def test_compression_round_trips(payload: bytes, kind: int) -> None:
    assert decompress(compress(payload, kind), kind) == payload


@pytest.mark.parametrize("name", THEIRS)
@given(payload=payloads)
def test_compression_is_compatible_with_other_libraries(name: str, payload: bytes) -> None:
    kind, write, read = THEIRS[name]
    assert decompress(write(payload), kind) == payload
    if read is not None and payload:
        assert read(compress(payload, kind)) == payload


def test_lz4_blocks_are_independent() -> None:
    assert lz4.frame.get_frame_info(compress(b"ab" * 100_000, LZ4))["block_linked"] is False


@given(st.binary(max_size=200), kinds)
def test_decompress_reads_or_refuses_random_bytes(payload: bytes, kind: int) -> None:
    with contextlib.suppress(CannotDecompress):
        decompress(payload, kind)


@given(payloads.filter(len), kinds.filter(bool), st.data())
def test_decompress_refuses_truncated_payload(payload: bytes, kind: int, draws: st.DataObject) -> None:
    whole = compress(payload, kind)
    cut = whole[: draws.draw(st.integers(0, len(whole) - 1))]
    with contextlib.suppress(CannotDecompress):
        assert decompress(cut, kind) != payload


@pytest.mark.parametrize("kind", [GZIP, SNAPPY, LZ4, ZSTD], ids=NAMES[1:])
def test_decompress_refuses_payload_that_grows_too_large(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_PAYLOAD_BYTES", 1_000_000)
    assert decompress(compress(bytes(1_000_000), kind), kind) == bytes(1_000_000)
    with pytest.raises(CannotDecompress, match="grow past 1000000 bytes"):
        decompress(compress(bytes(1_000_001), kind), kind)
    with pytest.raises(CannotDecompress, match="grow past"):
        decompress(snappy.compress(bytes(1_000_001)), SNAPPY)


def test_unknown_compression_is_refused() -> None:
    assert compress(b"as it is", NONE) == decompress(b"as it is", NONE) == b"as it is"
    for work in (compress, decompress):
        with pytest.raises(UnsupportedCompression, match="no compression 5"):
            work(b"", 5)
