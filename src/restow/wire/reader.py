"""Reads a message by its definition, from untrusted bytes.

The library's own decoder is for responses of trusted brokers: it accepts truncated text, copies the rest of
the frame for every tagged field, and does not limit varints. This one checks every length against the
remaining bytes before it allocates anything, accepts null only where the protocol allows it, and reads each
byte once. It returns the same objects, and limits their number, because two bytes in a frame become a hundred
in memory.

As in the library, a function is generated for every message and version and compiled at its first use, so
that nothing is looked up while reading:

    it.controller_id, it.controller_epoch = unpack1(data, at)
    at += 8
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from restow.wire.messages import Message

    Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
    Definition: TypeAlias = dict[str, Any]

FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}
_LARGEST_VERSION = 2**15 - 1
_NOT_ASKED_FOR = 1 << 31
_NO_ID = bytes(16)
FEW = 16
_MOST_NUMBERS = 400_000
_MOST_NUMBERS_IN_ORDERS = 10 * _MOST_NUMBERS
_ORDERS = range(4, 7)
"""LeaderAndIsr, StopReplica and UpdateMetadata, which may have all partitions at once."""
_NUMBERS_PER_STRUCTURE = 4


class Unreadable(ValueError):
    """The bytes contradict the definition."""


@cache
def reader_of(message: Message, version: int) -> Read:
    """Return a function (bytes, position) → (message, end position), made once per message and version."""
    first, last = versions(message.json["flexibleVersions"])
    most = _MOST_NUMBERS_IN_ORDERS if message.API_KEY in _ORDERS else _MOST_NUMBERS
    source = _ReaderSource(version, flexible=first <= version <= last, most=most)
    return source.compile(message, message.json["fields"])


def read_length(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    value = data[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        more = data[at]
        at += 1
        value |= (more & 0x7F) << shift
        if more < 0x80:
            return value, at
    raise Unreadable("a length of more than five bytes")


def skip_tags(data: bytes, at: int) -> int:
    """Return the position after unknown tagged fields."""
    count, at = read_length(data, at)
    for _ in range(count):
        _, at = read_length(data, at)
        size, at = read_length(data, at)
        at = _end(data, at, size)
    return at


class FunctionSource:
    """The source of a generated function that reads or writes, and the values that it refers to by name."""

    def __init__(
        self, version: int, *, flexible: bool, lines: Iterable[str], names: Mapping[str, Any]
    ) -> None:
        self._version, self._flexible = version, flexible
        self._lines, self._names = [*lines], {**names}
        self._depth = 1
        self._count = 0

    def _function(self, name: str) -> Any:
        """Return the function of that name."""
        exec("\n".join(self._lines), self._names)  # noqa: S102 - our own text, made of trusted definitions
        return self._names[name]

    def _write(self, *lines: str) -> None:
        indent = "    " * self._depth
        self._lines += [indent + line for line in lines]

    def _name(self, stem: str, value: Any = None) -> str:
        """Return a unique name, for a variable or for a value that the source refers to."""
        self._count += 1
        name = f"{stem}{self._count}"
        if value is not None:
            self._names[name] = value
        return name

    def _has(self, definition: Definition, key: str = "versions") -> bool:
        """Return whether this version is in the definition's range of that name."""
        first, last = versions(definition.get(key, "none"))
        return first <= self._version <= last


class _ReaderSource(FunctionSource):
    """The source of a reader."""

    def __init__(self, version: int, *, flexible: bool, most: int = _MOST_NUMBERS) -> None:
        self._most = most
        names = {
            "cut_off": _cut_off,
            "too_many": _too_many,
            "not_null": _not_null,
            "read_length": read_length,
            "read_tags": _read_tags,
            "read_uuid": _read_uuid,
            "read_bits": _read_bits,
            "new": object.__new__,
            "unpack": struct.unpack_from,
        }
        super().__init__(version, flexible=flexible, lines=["def read(data, at):"], names=names)

    def compile(self, kind: Any, fields: Sequence[Definition]) -> Read:
        """Return a reader of one structure."""
        self._write("left = len(data)", f"spare = {self._most}")
        self._struct("it", kind, fields)
        self._write("return it, at")
        return self._compiled()

    def _compile_value(self, kind: Any, field: Definition) -> Read:
        self._write("left = len(data)", f"spare = {self._most}")
        self._value("it", kind, field)
        self._write("return it, at")
        return self._compiled()

    def _compiled(self) -> Read:
        read: Read = self._function("read")
        return read

    def _struct(self, it: str, kind: Any, fields: Sequence[Definition]) -> None:
        self._write(f"{it} = new({self._name('kind', kind)})", f"{it}._version = {self._version}")
        self._write(f"{it}.tags = {it}.unknown_tags = None")
        if hasattr(kind, "API_KEY"):
            self._write(f"{it}._header = None")
        present = [field for field in fields if self._has(field)]
        run: list[Definition] = []
        for field in present:
            if self._has(field, "taggedVersions"):
                continue
            if field["type"] in FIXED:
                run.append(field)
                continue
            self._fixed(it, run)
            run = []
            self._value(f"{it}.{field_name(field)}", kind, field)
        self._fixed(it, run)
        if self._flexible:
            self._tags(it, kind, [field for field in present if self._has(field, "taggedVersions")])

    def _fixed(self, it: str, fields: Sequence[Definition]) -> None:
        """Read adjacent fields of fixed size together."""
        if fields:
            layout = struct.Struct(">" + "".join(FIXED[field["type"]] for field in fields))
            targets = "".join(f"{it}.{field_name(field)}, " for field in fields)
            self._write(f"{targets}= {self._name('unpack', layout.unpack_from)}(data, at)")
            self._write(f"at += {layout.size}")

    def _tags(self, it: str, kind: Any, fields: Sequence[Definition]) -> None:
        known = {}
        for field in fields:
            source = _ReaderSource(self._version, flexible=True)
            known[field["tag"]] = (field_name(field), source._compile_value(kind, field))
        name = self._name("known")
        self._names[name] = known
        self._write("if data[at]:", f"    at = read_tags({it}, {name}, data, at)", "else:", "    at += 1")

    def _value(self, target: str, kind: Any, field: Definition) -> None:
        """Read one value of any other type."""
        type_name: str = field["type"]
        if type_name in FIXED:
            layout = struct.Struct(f">{FIXED[type_name]}")
            self._write(f"{target}, = {self._name('unpack', layout.unpack_from)}(data, at)")
            self._write(f"at += {layout.size}")
        elif type_name.startswith("[]"):
            self._array(target, kind, field)
        elif "fields" in field:
            self._nested(target, kind, field)
        elif type_name in {"uuid", "bitfield"}:
            self._write(f"{target}, at = {'read_uuid' if type_name == 'uuid' else 'read_bits'}(data, at)")
        else:
            self._sized(target, field)

    def _nested(self, target: str, kind: Any, field: Definition) -> None:
        it = self._name("it")
        nullable = self._has(field, "nullableVersions")
        if nullable:
            self._write("at += 1", "if data[at - 1] >= 0x80:", f"    {it} = None", "else:")
            self._depth += 1
        self._struct(it, getattr(kind, field["type"]), field["fields"])
        self._depth -= nullable
        self._write(f"{target} = {it}")

    def _size(self, target: str, size: str, field: Definition, plain: str) -> None:
        """Read a plain length, or a varint of the length plus one. The next lines are for non-null values."""
        if self._flexible:
            self._write(f"{size} = data[at] - 1", "at += 1")
            self._write(
                f"if {size} >= 0x7F:", f"    {size}, at = read_length(data, at - 1)", f"    {size} -= 1"
            )
        else:
            self._write(f"{size}, = unpack('>{plain}', data, at)", f"at += {struct.calcsize(f'>{plain}')}")
        self._write(f"if {size} < 0:")
        null = f"{target} = None" if self._has(field, "nullableVersions") else f"not_null({field['name']!r})"
        self._write(f"    {null}", "else:")

    def _sized(self, target: str, field: Definition) -> None:
        """Read a string or bytes."""
        is_text = field["type"] == "string"
        self._size(target, "size", field, "h" if is_text else "i")
        self._write("    end = at + size", "    if end > left: cut_off(size, left - at)")
        self._write(f"    {target} = data[at:end]{'.decode()' if is_text else ''}", "    at = end")

    def _array(self, target: str, kind: Any, field: Definition) -> None:
        element = {**field, "type": field["type"][2:], "nullableVersions": "none"}
        code = FIXED.get(element["type"])
        width = struct.calcsize(f">{code}") if code else 1
        size, list_name, value = self._name("size"), self._name("list"), self._name("value")
        self._size(target, size, field, "i")
        self._depth += 1
        self._write(f"if {size} * {width} > left - at: cut_off({size} * {width}, left - at)")
        weight = 1 if code else _NUMBERS_PER_STRUCTURE
        self._write(f"spare -= {size} * {weight}", "if spare < 0: too_many()")
        if code:
            self._write(
                f"if {size} < {FEW}:", f"    {target} = [*{self._name('few', _few(code))}[{size}](data, at)]"
            )
            self._write("else:", f"    {target} = [*unpack(f'>{{{size}}}{code}', data, at)]")
            self._write(f"at += {size} * {width}")
        else:
            self._write(f"{target} = {list_name} = []", f"for _ in range({size}):")
            self._depth += 1
            self._value(value, kind, element)
            self._write(f"{list_name}.append({value})")
            self._depth -= 1
        self._depth -= 1


@cache
def _few(code: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """Return unpackers of zero values, one, two and so on: replica lists are short and many."""
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(FEW))


@cache
def versions(text: str) -> tuple[int, int]:
    """Parse `3+`, `2-5`, `4` or `none`."""
    if text == "none":
        return 1, 0
    first, to, last = text.rstrip("+").partition("-")
    if text.endswith("+"):
        return int(first), _LARGEST_VERSION
    return int(first), int(last if to else first)


def field_name(definition: Definition) -> str:
    """Return the library's snake case: an underscore before every capital."""
    name: str = definition["name"]
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def _cut_off(announced: int, left: int) -> None:
    raise Unreadable(f"{announced} bytes are announced where {left} are left")


def _too_many() -> None:
    raise Unreadable("more elements are in it than any request needs")


def _not_null(name: str) -> None:
    raise Unreadable(f"{name} cannot be null")


def _end(data: bytes, at: int, size: int) -> int:
    if size > len(data) - at:
        _cut_off(size, len(data) - at)
    return at + size


def _read_tags(it: Any, known: dict[int, tuple[str, Read]], data: bytes, at: int) -> int:
    names: set[str] = set()
    unknown: dict[str, bytes] = {}
    count, at = read_length(data, at)
    for _ in range(count):
        tag, at = read_length(data, at)
        size, at = read_length(data, at)
        end = _end(data, at, size)
        if tag in known:
            name, read = known[tag]
            value, at = read(data, at)
            if at != end:
                raise Unreadable(f"the tagged field {name} is not as long as announced")
            setattr(it, name, value)
            names.add(name)
        else:
            unknown[f"_{tag}"] = data[at:end]
        at = end
    it.tags = names or None
    it.unknown_tags = unknown or None
    return at


def _read_uuid(data: bytes, at: int) -> tuple[UUID | None, int]:
    end = _end(data, at, len(_NO_ID))
    return _uuid_of(data[at:end]), end


@lru_cache(maxsize=4096)
def _uuid_of(raw: bytes) -> UUID | None:
    """Return an id, or None instead of zeros. The ids of topics are read again and again."""
    return None if raw == _NO_ID else UUID(bytes=raw)


def _read_bits(data: bytes, at: int) -> tuple[set[int] | None, int]:
    (value,) = struct.unpack_from(">I", data, at)
    bits = None if value == _NOT_ASKED_FOR else {bit for bit in range(32) if value >> bit & 1}
    return bits, at + 4
