"""Check the values in files from elsewhere: each function returns the value or raises a ValueError.

Files may be damaged, edited by hand or malicious. A value that Kafka could not have (a broker twice in a list
of replicas, a size of 10^400, half a surrogate) is refused here, before it is used.
"""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from restow.errors import InvalidDocument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.model.ids import BrokerId

T = TypeVar("T")
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""The errors that reading a damaged document may raise."""
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_SHOWN = 60


@contextmanager
def damage_named(source: str, advice: str) -> Iterator[None]:
    """Turn the errors of a damaged document into one that names the document and says what to do."""
    try:
        yield
    except InvalidDocument:
        raise
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidDocument(f"{source} is not JSON: {error}") from None
    except DAMAGE as error:
        raise InvalidDocument(f"{source} is damaged: {what(error)}. {advice}") from None


def number(value: object, most: int = LONG_MAX) -> int:
    """Return an integer from 0 to `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{shown(value)} is not a whole number")  # noqa: TRY004
    if not 0 <= value <= most:
        raise ValueError(f"{shown(value)} is not between 0 and {most}")
    return value


def real(value: object) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{shown(value)} is not a number")
    return float(value)


def text(value: object) -> str:
    """Return a string that can be written to a file or a terminal."""
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a text")  # noqa: TRY004
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{shown(value)} has half a character in it")
    return value


def items(value: object) -> list[Any]:
    """Return a list of anything."""
    if not isinstance(value, list):
        raise ValueError(f"{shown(value)} is not a list")  # noqa: TRY004
    return value


def members(value: object) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{shown(value)} is not an object with named members")  # noqa: TRY004
    return value


def optional(value: object, checked: Callable[[object], T]) -> T | None:
    """Return None, or the checked value."""
    return None if value is None else checked(value)


def flag(value: object) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is not true or false")  # noqa: TRY004
    return value


def texts(value: object) -> tuple[str, ...]:
    """Return a list of strings."""
    return tuple(map(text, items(value)))


def broker(value: object) -> BrokerId:
    return number(value, INT_MAX)


def brokers(value: object) -> tuple[BrokerId, ...]:
    """Return broker ids without duplicates."""
    found = tuple(items(value))
    if not found:
        return ()
    if {*map(type, found)} != {int} or min(found) < 0 or max(found) > INT_MAX:
        raise ValueError(f"{shown(value)} is not a list of brokers")
    if len(set(found)) < len(found):
        raise ValueError(f"{shown(value)} names a broker twice")
    return found


def by_broker(value: object, checked: Callable[[object], T]) -> dict[BrokerId, T]:
    """Return an object whose names are broker ids."""
    return {broker(_whole(key)): checked(each) for key, each in members(value).items()}


def no_constant(name: str) -> object:
    """Refuse NaN and Infinity, for `json.loads(parse_constant=…)`: they are not JSON."""
    raise ValueError(f"{name} is not a number")


def what(error: BaseException) -> str:
    """Say what is wrong with a document, in a few words."""
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def shown(value: object) -> str:
    """Format a value for an error, shortened. A huge number is not written out: that alone takes minutes."""
    if isinstance(value, int) and value.bit_length() > 256:
        return "an enormous number"
    found = repr(value)
    return found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"


def _whole(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) <= 10):
        raise ValueError(f"{shown(key)} is not a broker")
    return int(key)
