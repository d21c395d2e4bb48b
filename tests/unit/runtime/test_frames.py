"""Streams are cut into their frames, whatever pieces they arrive in."""

from __future__ import annotations

import struct

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.runtime.frames import BadFrame, FrameCutter, SpareBuffers


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def feed(cutter: FrameCutter, stream: bytes, piece: int) -> list[bytes]:
    """Receive a stream in pieces of at most that size, and take all frames after each."""
    frames = []
    at = 0
    while at < len(stream):
        room = cutter.room()
        assert len(room) > 0
        got = stream[at : at + min(piece, len(room))]
        room[: len(got)] = got
        at += len(got)
        cutter.received(len(got))
        while (frame := cutter.next_frame()) is not None:
            frames.append(frame)
    return frames


@given(
    frames=st.lists(st.binary(max_size=200)),
    piece=st.integers(1, 300),
    buffer=st.integers(1, 64),
    usual=st.integers(0, 150),
)
def test_cutter_returns_frames_for_any_pieces(
    frames: list[bytes], piece: int, buffer: int, usual: int
) -> None:
    cutter = FrameCutter(200, SpareBuffers(usual), receive_bytes=buffer)
    assert feed(cutter, framed(*frames), piece) == frames
    assert cutter.is_between_frames


@given(st.integers(1, 30))
def test_incomplete_frame_is_noticed(cut: int) -> None:
    cutter = FrameCutter(100, SpareBuffers(), receive_bytes=16)
    assert feed(cutter, framed(b"x" * 30)[:cut], 7) == []
    assert not cutter.is_between_frames


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_invalid_length_is_refused_at_once(length: int) -> None:
    cutter = FrameCutter(100, SpareBuffers())
    with pytest.raises(BadFrame, match=f"a frame of {length} bytes was announced; 0 to 100 may come"):
        feed(cutter, struct.pack(">i", length), 1)


def test_frames_taken_later_are_unchanged() -> None:
    cutter = FrameCutter(100, SpareBuffers(), receive_bytes=64)
    stream = framed(b"one", b"two", b"three")
    cutter.room()[: len(stream)] = stream
    cutter.received(len(stream))
    assert [cutter.next_frame() for _ in range(4)] == [b"one", b"two", b"three", None]


@pytest.mark.parametrize("usual", [10, 1000])
def test_large_frame_is_not_overwritten_later(usual: int) -> None:
    cutter = FrameCutter(1000, SpareBuffers(usual), receive_bytes=16)
    (first,) = feed(cutter, framed(b"a" * 500), 100)
    (second,) = feed(cutter, framed(b"b" * 400), 100)
    assert type(first) is bytes
    assert (first, second) == (b"a" * 500, b"b" * 400)


def test_frames_of_two_streams_do_not_mix() -> None:
    spares = SpareBuffers()
    cutters = [FrameCutter(1000, spares, receive_bytes=16) for _ in range(2)]
    streams = [framed(letter * 500, letter * 600) for letter in (b"a", b"b")]
    cut: list[list[bytes]] = [[], []]
    for at in range(0, len(streams[0]), 50):
        for number, cutter in enumerate(cutters):
            cut[number] += feed(cutter, streams[number][at : at + 50], 50)
    assert cut == [[b"a" * 500, b"a" * 600], [b"b" * 500, b"b" * 600]]


def test_buffers_are_reused() -> None:
    spares = SpareBuffers(100)
    first = spares.take()
    spares.give_back(first)
    assert spares.take() is first
    assert spares.take() is not first


def test_incomplete_frame_returns_its_buffer_on_close() -> None:
    spares = SpareBuffers(100)
    cutter = FrameCutter(1000, spares, receive_bytes=16)
    assert feed(cutter, framed(b"x" * 90)[:30], 30) == []
    cutter.close()
    assert cutter.is_between_frames
    assert len(spares._spares) == 1


def test_announced_frames_take_little_memory() -> None:
    """A hundred incomplete frames of two megabytes, and a hundred of a hundred."""
    spares = SpareBuffers()
    before = psutil.Process().memory_info().rss
    cutters = [FrameCutter(2**30, spares) for _ in range(200)]
    for number, cutter in enumerate(cutters):
        feed(cutter, struct.pack(">i", 2 * 2**20 if number % 2 else 100 * 2**20) + b"x", 5)
    grown = psutil.Process().memory_info().rss - before
    assert grown < 50 * 2**20
    assert not any(cutter.is_between_frames for cutter in cutters)
