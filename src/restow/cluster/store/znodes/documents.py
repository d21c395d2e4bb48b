"""JSON as Kafka writes it into znodes, and a strict reader."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from restow.cluster.store.errors import UnreadableNode
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PARTITION = re.compile(r"[0-9]{1,10}", re.ASCII)
_SPECIAL = re.compile(r"\\\\|\\u00[0-9a-f]{2}|[\U00010000-\U0010ffff]")


def render(fields: Mapping[str, object]) -> bytes:
    """Encode byte for byte as Kafka's JSON library does.

    No spaces; UTF-8, except for what lies beyond 16 bits; capital digits in escapes.
    """
    text = _ENCODER.encode(fields)
    if "\\u00" in text or not text.isascii():
        text = _SPECIAL.sub(_as_kafka_does, text)
    return text.encode()


def _as_kafka_does(match: re.Match[str]) -> str:
    found = match[0]
    if found.startswith("\\u"):
        return f"\\u{found[2:].upper()}"
    if found.startswith("\\"):
        return found
    pair = found.encode("utf-16-be").hex().upper()
    return f"\\u{pair[:4]}\\u{pair[4:]}"


@dataclass(frozen=True, slots=True)
class PartitionList:
    """Base of znodes that hold nothing but a list of partitions."""

    partitions: tuple[TopicPartition, ...]

    def encode(self) -> bytes:
        entries = [{"topic": topic, "partition": partition} for topic, partition in self.partitions]
        return render({"version": 1, "partitions": entries})

    @classmethod
    def decode(cls, data: bytes, path: str) -> Self:
        found = Document.parse(path, data, versions=(1,))
        return cls(tuple(entry.partition() for entry in found.documents("partitions")))


class Document:
    """A znode's JSON object. Any deviation raises UnreadableNode with the node's path."""

    __slots__ = ("_fields", "_path")

    def __init__(self, path: str, fields: Any) -> None:
        self._path = path
        if not isinstance(fields, dict):
            self._fail(f"there should be an object, not {_short(fields)}")
        self._fields: dict[str, Any] = fields

    @classmethod
    def parse(cls, path: str, data: bytes, versions: Container[int | str]) -> Document:
        """Parse the node's bytes; the version must be one of `versions`."""
        try:
            fields = _DECODER.decode(data.decode())
        except UnicodeDecodeError as error:
            raise UnreadableNode(path, f"it is not UTF-8 ({error.reason} at byte {error.start})") from None
        except (ValueError, RecursionError) as error:
            raise UnreadableNode(path, f"it is not JSON ({error})") from None
        document = cls(path, fields)
        version = document._get("version")
        if type(version) not in {int, str} or version not in versions:
            document._fail(f"it has version {_short(version)}, which is not known here")
        return document

    @property
    def version(self) -> int:
        return self.integer("version")

    def has(self, key: str) -> bool:
        """Return whether the field is present and not null."""
        return self._fields.get(key) is not None

    def integer(self, key: str) -> int:
        """Return a 32-bit number."""
        return self._integer(key, self._get(key), _INT32)

    def text(self, key: str) -> str:
        """Return a string."""
        value = self._get(key)
        if not isinstance(value, str):
            self._fail(f"{key} should be a string, not {_short(value)}")
        return value

    def long(self, key: str) -> int:
        """Return a 64-bit number, which Kafka writes as a string."""
        value = self._get(key)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = int(value)
        return self._integer(key, value, _INT64)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a list of 32-bit numbers."""
        return tuple(self._integer(key, value, _INT32) for value in self._list(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self._list(key)
        for value in values:
            if not isinstance(value, str):
                self._fail(f"{key} should have only strings, not {_short(value)}")
        return tuple(values)

    def documents(self, key: str) -> tuple[Document, ...]:
        """Return a list of objects."""
        return tuple(Document(self._path, value) for value in self._list(key))

    def document(self, key: str) -> Document:
        """Return a nested object; empty if it is missing."""
        return Document(self._path, self._fields.get(key, {}))

    def partition(self) -> TopicPartition:
        """Return the partition that this object names."""
        number = self.integer("partition")
        if number < 0:
            self._fail(f"{number} is not a partition")
        return TopicPartition(self.text("topic"), number)

    def names(self) -> tuple[str, ...]:
        """Return the fields' names in their order."""
        return tuple(self._fields)

    def partition_numbers(self) -> tuple[int, ...]:
        """Return the fields' names in their order, all of them partition numbers."""
        for key in self._fields:
            if not (_PARTITION.fullmatch(key) and int(key) in _INT32):
                self._fail(f"{_short(key)} is not a partition")
        return tuple(map(int, self._fields))

    def _get(self, key: str) -> Any:
        if key not in self._fields:
            self._fail(f"it has no {key}")
        return self._fields[key]

    def _list(self, key: str) -> list[Any]:
        value = self._get(key)
        if not isinstance(value, list):
            self._fail(f"{key} should be a list, not {_short(value)}")
        return value

    def _integer(self, key: str, value: Any, bounds: range) -> int:
        if type(value) is not int or value not in bounds:
            self._fail(f"{key} should be a whole number, not {_short(value)}")
        return value

    def _fail(self, reason: str) -> NoReturn:
        raise UnreadableNode(self._path, reason)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Made once: with such settings, `loads` and `dumps` make one for every call."""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
