"""Fields of group records: an encoder, and a decoder that checks everything."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING
from uuid import UUID

from restow.errors import RestowError
from restow.wire.primitives import INT8, INT16, INT32, INT64, varint

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_STRING_BYTES = 2**15 - 1
_LENGTH_BITS = 35
_UUID_BYTES = 16


class InvalidGroupRecord(RestowError):
    """Bytes that are not a valid record."""


def string(text: str) -> bytes:
    data = text.encode()
    if len(data) > _LONGEST_STRING_BYTES:
        raise InvalidGroupRecord(
            f"a text of {len(data)} bytes cannot be written: a record holds {_LONGEST_STRING_BYTES} at most"
        )
    return INT16.pack(len(data)) + data


def nullable_string(text: str | None) -> bytes:
    return INT16.pack(-1) if text is None else string(text)


def sized_bytes(data: bytes) -> bytes:
    return INT32.pack(len(data)) + data


def compact_string(text: str | None) -> bytes:
    """Encode a text, or null, as flexible versions do."""
    return b"\0" if text is None else compact_bytes(text.encode())


def compact_bytes(data: bytes) -> bytes:
    return varint(len(data) + 1) + data


def compact_array(elements: Sequence[bytes]) -> bytes:
    return b"".join((varint(len(elements) + 1), *elements))


class FieldReader:
    """Reads bytes field by field; raises InvalidGroupRecord if they are truncated or invalid.

    While `flexible` is set, lengths are varints, and tagged fields at the end of structures are skipped.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.flexible = False

    def int8(self) -> int:
        return self._number(INT8)

    def int16(self) -> int:
        return self._number(INT16)

    def int32(self) -> int:
        return self._number(INT32)

    def int64(self) -> int:
        return self._number(INT64)

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise InvalidGroupRecord(f"null at byte {self._at}, where there must be a text")
        return text

    def nullable_string(self) -> str | None:
        data = self._sized(self._varint() - 1 if self.flexible else self.int16())
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise InvalidGroupRecord(f"a text before byte {self._at} is not UTF-8: {error}") from error

    def uuid(self) -> UUID:
        return UUID(bytes=self._sized(_UUID_BYTES))

    def nullable_bytes(self) -> bytes | None:
        return self._sized(self._varint() - 1 if self.flexible else self.int32())

    def sized_bytes(self) -> bytes:
        data = self.nullable_bytes()
        if data is None:
            raise InvalidGroupRecord(f"null at byte {self._at}, where there must be bytes")
        return data

    def nullable_count(self) -> int:
        """Return the number of elements of an array that may be null; 0 for null."""
        at = self._at
        if (self._varint() - 1 if self.flexible else self.int32()) == -1:
            return 0
        self._at = at
        return self.count()

    def count(self) -> int:
        """Return the number of array elements. Each takes at least a byte, so it is limited by the rest."""
        number = self._varint() - 1 if self.flexible else self.int32()
        if not 0 <= number <= len(self._data) - self._at:
            raise InvalidGroupRecord(f"{number} elements cannot be in the bytes from {self._at} on")
        return number

    def structure_end(self) -> dict[int, bytes]:
        """Return the tagged fields, if there are any."""
        if not self.flexible:
            return {}
        return {self._varint(): self._sized(self._varint()) or b"" for _ in range(self._varint())}

    def end(self) -> None:
        """Raise if bytes are left."""
        if left := len(self._data) - self._at:
            raise InvalidGroupRecord(f"{left} bytes are left behind the last field")

    def _number(self, kind: struct.Struct) -> int:
        try:
            (number,) = kind.unpack_from(self._data, self._at)
        except struct.error as error:
            raise InvalidGroupRecord(f"the bytes end within a number at {self._at}") from error
        self._at += kind.size
        return int(number)

    def _sized(self, length: int) -> bytes | None:
        if length == -1:
            return None
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise InvalidGroupRecord(f"a length of {length} at byte {self._at} is not within the record")
        data = self._data[self._at : end]
        self._at = end
        return data

    def _varint(self) -> int:
        number = 0
        for shift in range(0, _LENGTH_BITS, 7):
            if self._at >= len(self._data):
                break
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise InvalidGroupRecord(f"the varint before byte {self._at} does not end")
