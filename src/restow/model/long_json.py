"""Read long JSON documents a piece at a time.

As dicts and lists, a million partitions fill gigabytes. In our own files each partition begins a line. So a
few can be parsed by themselves, converted, and freed before the next ones are read.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
Pieces: TypeAlias = "Iterator[list[Any]]"

_CHARACTERS = 1 << 15


def read(text: str, key: str, first: str, made: Callable[[Any, Pieces], T]) -> T:
    """Return the result of `made` for a document whose long list is passed in pieces.

    `key` names the list, the last one in the document, and `first` the first field of its items. Text with
    another layout is one piece. So is text with an error, or text that orjson refuses (NaN, for example):
    errors are then about the whole text, and `made` is called again for it.
    """
    regular = _cut(text, key, first)
    if regular is not None:
        with suppress(LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return made(*regular)
    document = json.loads(text)
    return made(document, (document[name] for name in (key,)))


def _cut(text: str, key: str, first: str) -> tuple[Any, Pieces] | None:
    """Return the document without the list's items, and the items; None if the layout is different."""
    opening, closing = f'"{key}": [\n', "]}\n"
    at = text.find(opening)
    if at < 0 or not text.endswith(closing):
        return None
    try:
        document = json.loads(f"{text[:at]}{opening}{closing}")
    except (ValueError, RecursionError):
        return None
    return document, _pieces(text, at + len(opening), len(text) - len(closing), f',\n{{"{first}": ')


def _pieces(text: str, at: int, end: int, between: str) -> Pieces:
    """Cut where an item seems to end. If it does not end there, the piece is not valid JSON."""
    while at < end:
        cut = text.find(between, at + _CHARACTERS, end)
        stop = end if cut < 0 else cut
        items = orjson.loads(f"[{text[at:stop]}]")
        if not items:
            raise ValueError("there is nothing between two commas")
        yield items
        at = stop + 1
