"""Writes a message by its definition.

It writes the same bytes as the library's encoder, in half of the time: that one calls a function for the
tagged fields of every structure, of which nearly all have none. As in the reader, a function is generated for
every message and version and compiled at its first use:

    add(pack1(it.controller_id, it.controller_epoch))
    for each1 in it.topics: …
"""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from uuid import UUID

from restow.wire.primitives import INT16, INT32, NO_TAGS, tags, varint
from restow.wire.reader import FEW, FIXED, FunctionSource, field_name, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.wire.messages import Message

    Write: TypeAlias = Callable[[Any], bytes]
    Definition: TypeAlias = dict[str, Any]

_SHORT = tuple(bytes((number,)) for number in range(0x80))
"""Lengths of one byte."""
_NULL_INT16, _NULL_INT32 = INT16.pack(-1), INT32.pack(-1)
_EMPTY = b"\x01"
_NO_ID = bytes(16)
_NOT_ASKED_FOR = frozenset((31,))


def written(message: Message, version: int) -> bytes:
    """Return a message as bytes."""
    kind: Any = type(message)
    return writer_of(kind, version)(message)


@cache
def writer_of(message: Message, version: int) -> Write:
    """Return a function message → bytes, made once per message and version."""
    first, last = versions(message.json["flexibleVersions"])
    source = _WriterSource(version, flexible=first <= version <= last)
    return source.compile(message, message.json["fields"])


class _Tagged(NamedTuple):
    name: str
    default: object
    write: Write


class _WriterSource(FunctionSource):
    """The source of a writer."""

    def __init__(self, version: int, *, flexible: bool, within_tag: bool = False) -> None:
        self._within_tag = within_tag
        """Structures in a tagged field have no tagged fields of their own."""
        names = {
            "long": varint,
            "short": _SHORT,
            "int16": INT16.pack,
            "int32": INT32.pack,
            "pack": struct.pack,
            "text_of": str,
            "id_of": _id_of,
            "bits_of": _bits_of,
            "write_tags": _write_tags,
            "buffers": (bytes, bytearray, memoryview),
        }
        lines = ("def write(it):", "    out = []", "    add = out.append")
        super().__init__(version, flexible=flexible, lines=lines, names=names)

    def compile(self, kind: Any, fields: Sequence[Definition]) -> Write:
        """Return a writer of one structure."""
        self._struct("it", kind, fields)
        return self._compiled()

    def _compile_value(self, kind: Any, field: Definition) -> Write:
        self._value("it", kind, field)
        return self._compiled()

    def _compiled(self) -> Write:
        self._write("return b''.join(out)")
        write: Write = self._function("write")
        return write

    def _struct(self, it: str, kind: Any, fields: Sequence[Definition]) -> None:
        present = [field for field in fields if self._has(field)]
        tagged = [field for field in present if self._has(field, "taggedVersions")]
        run: list[Definition] = []
        for field in present:
            if field in tagged:
                continue
            if field["type"] in FIXED:
                run.append(field)
                continue
            self._fixed(it, run)
            run = []
            value = self._name("value")
            self._write(f"{value} = {it}.{field_name(field)}")
            self._value(value, kind, field)
        has_tags = self._flexible and bool(tagged) and not self._within_tag
        self._fixed(it, run, end="x" if self._flexible and not has_tags else "")
        if has_tags:
            self._tags(it, kind, tagged)

    def _fixed(self, it: str, fields: Sequence[Definition], end: str = "") -> None:
        """Write adjacent fields of fixed size together; `end` is the byte that says that no tags follow."""
        if fields:
            layout = struct.Struct(">" + "".join(FIXED[field["type"]] for field in fields) + end)
            values = ", ".join(f"{it}.{field_name(field)}" for field in fields)
            self._write(f"add({self._name('pack', layout.pack)}({values}))")
        elif end:
            self._write(f"add({NO_TAGS!r})")

    def _tags(self, it: str, kind: Any, fields: Sequence[Definition]) -> None:
        known = {}
        for field in fields:
            name = field_name(field)
            source = _WriterSource(self._version, flexible=True, within_tag=True)
            write = source._compile_value(kind, field)
            known[field["tag"]] = _Tagged(name, kind.fields[name].default, write)
        self._write(f"add(write_tags({it}, {self._name('known', known)}))")

    def _value(self, value: str, kind: Any, field: Definition) -> None:
        """Write one value, which the variable holds."""
        type_name: str = field["type"]
        if type_name in FIXED:
            self._write(f"add({self._name('pack', struct.Struct('>' + FIXED[type_name]).pack)}({value}))")
        elif type_name.startswith("[]"):
            self._array(value, kind, field)
        elif "fields" in field:
            self._nested(value, kind, field)
        elif type_name in {"uuid", "bitfield"}:
            self._write(f"add({'id_of' if type_name == 'uuid' else 'bits_of'}({value}))")
        else:
            self._sized(value, is_text=type_name == "string")

    def _nested(self, value: str, kind: Any, field: Definition) -> None:
        if nullable := self._has(field, "nullableVersions"):
            self._write(f"if {value} is None:", "    add(b'\\xff')", "else:", "    add(b'\\x01')")
        self._depth += nullable
        self._struct(value, getattr(kind, field["type"]), field["fields"])
        self._depth -= nullable

    def _size(self, value: str, *, plain: str) -> None:
        """Write a plain length, or a varint of the length plus one, of a value that is not null."""
        if self._flexible:
            self._write(f"size = len({value}) + 1", "add(short[size] if size < 0x80 else long(size))")
        else:
            self._write(f"add({plain}(len({value})))")

    def _null(self, value: str, null: bytes) -> None:
        self._write(f"if {value} is None:", f"    add({NO_TAGS if self._flexible else null!r})", "else:")

    def _sized(self, value: str, *, is_text: bool) -> None:
        """Write a string or bytes."""
        self._null(value, _NULL_INT16 if is_text else _NULL_INT32)
        self._depth += 1
        if is_text:
            self._write(f"{value} = text_of({value}).encode()")
        else:
            self._write(f"if not isinstance({value}, buffers): {value} = {value}.encode()")
        self._size(value, plain="int16" if is_text else "int32")
        self._write(f"add({value})")
        self._depth -= 1

    def _array(self, value: str, kind: Any, field: Definition) -> None:
        element = {**field, "type": field["type"][2:], "nullableVersions": "none"}
        if self._has(field, "nullableVersions"):
            self._null(value, _NULL_INT32)
        else:  # no list is an empty one: of Metadata 0, all topics are none
            self._write(
                f"if {value} is None:", f"    add({_EMPTY if self._flexible else bytes(4)!r})", "else:"
            )
        self._depth += 1
        self._size(value, plain="int32")
        if code := FIXED.get(element["type"]):
            few = self._name("few", _few(code))
            self._write(f"if len({value}) < {FEW}: add({few}[len({value})](*{value}))")
            self._write(f"else: add(pack(f'>{{len({value})}}{code}', *{value}))")
        else:
            each = self._name("each")
            self._write(f"for {each} in {value}:")
            self._depth += 1
            self._value(each, kind, element)
            self._depth -= 1
        self._depth -= 1


@cache
def _few(code: str) -> tuple[Callable[..., bytes], ...]:
    """Return packers of zero values, one, two and so on: replica lists are short and many."""
    return tuple(struct.Struct(f">{count}{code}").pack for count in range(FEW))


def _id_of(value: UUID | str | None) -> bytes:
    if value is None:
        return _NO_ID
    return value.bytes if isinstance(value, UUID) else UUID(value).bytes


def _bits_of(bits: set[int] | None) -> bytes:
    return struct.pack(">I", sum(1 << bit for bit in (_NOT_ASKED_FOR if bits is None else set(bits))))


def _write_tags(it: Any, known: dict[int, _Tagged]) -> bytes:
    """Write the tagged fields that do not have their default, in the order of their numbers."""
    found = {
        tag: each.write(value)
        for tag, each in known.items()
        if (value := getattr(it, each.name, each.default)) != each.default
    }
    return tags(found)
