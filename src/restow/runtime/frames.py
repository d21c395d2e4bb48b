"""Cuts a byte stream into frames: an int32 length, then that many bytes.

Small frames are received many at a time into one buffer and copied out of it. A frame that does not fit gets
its own buffer: the received part moves there, and the rest is received straight into it. So every byte is
copied a bounded number of times, whatever the sizes.

Buffers for frames of usual size are reused: copying out of one costs less than fresh memory from the kernel
(0.5 against 1.9 ms for 1 MB). Very large frames are handed on without a copy. Memory is used only as bytes
come, so a client that announces much and sends little holds little.
"""

from __future__ import annotations

import mmap
import struct
from io import BytesIO
from typing import TypeAlias

from restow.errors import RestowError

Buffer: TypeAlias = bytes | bytearray | memoryview

LENGTH = struct.Struct(">i")
_RECEIVE_BYTES = 64 * 1024
_USUAL_BYTES = 2 * 1024 * 1024
_MOST_SPARES = 16


class NetworkError(RestowError, ConnectionError):
    """Base of the reasons for which we close a connection."""


class BadFrame(NetworkError):
    """The peer announced an invalid length, or closed in the middle of a frame."""


def _untouched(size: int) -> memoryview:
    """Return memory that the kernel allocates page by page as it is written."""
    return memoryview(mmap.mmap(-1, max(size, 1)))[:size]


class SpareBuffers:
    """Buffers of one size that connections reuse for their frames."""

    __slots__ = ("_spares", "size")

    def __init__(self, size: int = _USUAL_BYTES) -> None:
        self.size = size
        self._spares: list[memoryview] = []

    def take(self) -> memoryview:
        """Return a buffer with arbitrary content."""
        return self._spares.pop() if self._spares else _untouched(self.size)

    def give_back(self, buffer: memoryview) -> None:
        """Return a buffer, which the caller must no longer use."""
        if len(self._spares) < _MOST_SPARES:
            self._spares.append(buffer)


class FrameCutter:
    """Fill `room()`, report the bytes to `received()`, then call `next_frame()` until it returns None."""

    __slots__ = (
        "_borrowed",
        "_end",
        "_large",
        "_large_end",
        "_large_file",
        "_max_frame_bytes",
        "_spares",
        "_start",
        "_view",
    )

    def __init__(
        self, max_frame_bytes: int, spares: SpareBuffers, *, receive_bytes: int = _RECEIVE_BYTES
    ) -> None:
        self._spares = spares
        self._max_frame_bytes = max_frame_bytes
        self._view = _untouched(max(receive_bytes, LENGTH.size))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._large_end = 0
        self._large_file = BytesIO()
        self._borrowed: memoryview | None = None

    @property
    def is_between_frames(self) -> bool:
        """Return whether no part of a frame is pending."""
        return self._large is None and self._start == self._end

    @property
    def large_bytes(self) -> int:
        """Return the received bytes of an incomplete frame that has its own buffer."""
        return self._large_end if self._large is not None else 0

    def room(self) -> memoryview:
        """Return where the next bytes belong. Never empty once all frames have been taken."""
        if self._large is not None:
            return self._large[self._large_end :]
        return self._view[self._end :]

    def received(self, count: int) -> None:
        """Count the bytes that were put into `room()`."""
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_frame(self) -> bytes | None:
        """Return the next complete frame without its length; None if bytes are missing. Raises BadFrame."""
        if self._large is not None:
            return self._finish_large()
        start = self._start
        here = self._end - start
        if here >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._view, start)
            if not 0 <= length <= self._max_frame_bytes:
                raise BadFrame(
                    f"a frame of {length} bytes was announced; 0 to {self._max_frame_bytes} may come"
                )
            begin = start + LENGTH.size
            if here >= LENGTH.size + length:
                self._start = begin + length
                return bytes(self._view[begin : begin + length])
            if LENGTH.size + length > len(self._view):
                self._begin_large(begin, length)
                return None
        self._move_to_front()
        return None

    def close(self) -> None:
        """Drop the incomplete frame, because no more bytes will come."""
        if self._borrowed is not None:
            self._spares.give_back(self._borrowed)
            self._borrowed = None
        self._large = None
        self._large_file = BytesIO()
        self._start = self._end = 0

    def _begin_large(self, begin: int, length: int) -> None:
        """Use a BytesIO: it lends its bytes for writing, and hands them over at the end without a copy."""
        if length <= self._spares.size:
            self._borrowed = self._spares.take()
            self._large = self._borrowed[:length]
        else:
            self._large_file = BytesIO(bytes(length))
            self._large = self._large_file.getbuffer()
        self._large_end = self._end - begin
        self._large[: self._large_end] = self._view[begin : self._end]
        self._start = self._end = 0

    def _finish_large(self) -> bytes | None:
        if self._large is None or self._large_end < len(self._large):
            return None
        if self._borrowed is not None:
            frame = bytes(self._large)
            self._spares.give_back(self._borrowed)
            self._borrowed = None
        else:
            frame = self._large_file.getvalue()
            self._large_file = BytesIO()
        self._large = None
        return frame

    def _move_to_front(self) -> None:
        """Move an incomplete frame to the buffer's front, where it fits. It is moved at most once."""
        here = self._end - self._start
        if here and self._start:
            self._view[:here] = bytes(self._view[self._start : self._end])
        self._start = 0
        self._end = here
