"""Random messages of any kind and version, made from their definitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import DrawFn

    from restow.wire.messages import Message

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    "ab", min_size=120, max_size=140
)


def versions_of(message: Message) -> range:
    """Return the existing versions."""
    return _versions(message.json["validVersions"])


Narrow: TypeAlias = "Mapping[str, st.SearchStrategy[Any]]"


@st.composite
def messages(draw: DrawFn, message: Message, version: int, narrow: Narrow | None = None) -> Message:
    """Return a message of that class with random content for that version.

    Fields named in `narrow` get values from there, for parsers that do not accept all.
    """
    return message(version=version, **_fields(draw, message, message.json["fields"], version, narrow or {}))


def _fields(
    draw: DrawFn, kind: Any, fields: list[dict[str, Any]], version: int, narrow: Narrow
) -> dict[str, Any]:
    return {
        _snake(field["name"]): _value(draw, kind, field, version, narrow)
        for field in fields
        if version in _versions(field["versions"])
    }


def _value(draw: DrawFn, kind: Any, field: dict[str, Any], version: int, narrow: Narrow) -> Any:
    type_name = field["type"]
    tagged_struct = "fields" in field and not type_name.startswith("[]") and "tag" in field
    nullable = version in _versions(field.get("nullableVersions", "none")) or tagged_struct
    if nullable and draw(st.booleans()):
        return None
    if type_name.startswith("[]"):
        element = {**field, "type": type_name[2:], "nullableVersions": "none", "tag": None}
        element.pop("tag")
        return [_value(draw, kind, element, version, narrow) for _ in range(draw(st.integers(0, 3)))]
    if "fields" in field:
        inner = getattr(kind, type_name)
        return inner(version=version, **_fields(draw, inner, field["fields"], version, narrow))
    return draw(narrow[field["name"]] if field["name"] in narrow else _simple(type_name))


def _simple(type_name: str) -> st.SearchStrategy[Any]:
    if type_name in _BITS:
        half = 2 ** (_BITS[type_name] - 1)
        return st.integers(-half, half - 1)
    return {
        "bool": st.booleans(),
        "uint16": st.integers(0, 2**16 - 1),
        "float64": st.floats(allow_nan=False),
        "string": _TEXT,
        "bytes": st.binary(max_size=20),
        "records": st.binary(max_size=300),
        "uuid": st.uuids(),
        "bitfield": st.none() | st.sets(st.integers(0, 30)),
    }[type_name]


def _versions(text: str) -> range:
    if text == "none":
        return range(0)
    first, to, last = text.rstrip("+").partition("-")
    return range(int(first), 2**15 if text.endswith("+") else int(last if to else first) + 1)


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
