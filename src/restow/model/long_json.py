"""Long JSON documents, read a piece at a time.

As dicts and lists a million partitions fill gigabytes, all of it made, walked through and given back. In our
own files every one of them begins a line. So some can be read by themselves, made into what is wanted, and
forgotten before the next ones are read.
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
    """What is made of a document, the items of whose long list come apart from it, in pieces.

    `key` names the list, the last one there is, and `first` the field that its items begin with. Text that is
    laid out differently is one piece. So is text that something is wrong with, or that orjson will not have
    (NaN, say): what is said about it is then about the whole, and `made` is called again for that.
    """
    regular = _cut(text, key, first)
    if regular is not None:
        with suppress(LookupError, TypeError, ValueError, AttributeError, RecursionError):
            return made(*regular)
    document = json.loads(text)
    return made(document, (document[name] for name in (key,)))


def _cut(text: str, key: str, first: str) -> tuple[Any, Pieces] | None:
    """The document without the list's items, and these; None if it is not laid out like that."""
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
    """Cut where an item seems to end. If it does not, what comes before the cut is no JSON."""
    while at < end:
        cut = text.find(between, at + _CHARACTERS, end)
        stop = end if cut < 0 else cut
        items = orjson.loads(f"[{text[at:stop]}]")
        if not items:
            raise ValueError("there is nothing between two commas")
        yield items
        at = stop + 1
