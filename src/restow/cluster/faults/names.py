"""APIs, error codes and brokers as tests name them. A wrong name gets an error that lists the right ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from restow.cluster.handlers import HANDLERS
from restow.errors import InvalidBrokers, InvalidInput
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_NAMES = {key: REQUESTS[key].__name__.removesuffix("Request") for key in sorted(HANDLERS)}
_KEYS = {name.lower(): key for key, name in _NAMES.items()}
_CODES = {code.name: code for code in ErrorCode if code is not ErrorCode.NONE}
_BETWEEN_BROKERS = re.compile(r"broker-(\d+)-(?:control|fetch|isr|transactions)")


def name_of(api_key: int) -> str:
    """Return the API's name, as `Produce`."""
    return str(_NAMES[api_key])


def api_key_of(api: str | int) -> int:
    """Return the key of an API that is given by name or key. Raises InvalidInput."""
    key = api if isinstance(api, int) else _KEYS.get(api.lower())
    if key not in _NAMES:
        known = ", ".join(f"{name} ({key})" for key, name in _NAMES.items())
        raise InvalidInput(f"There is no API {api!r} on this cluster; there are {known}.")
    return key


def error_code_of(error: ErrorCode | str | int) -> ErrorCode:
    """Return the error that is given by name or number. Raises InvalidInput."""
    found = _CODES.get(error.upper()) if isinstance(error, str) else None
    if isinstance(error, int):
        found = next((code for code in _CODES.values() if code == error), None)
    if found is None:
        raise InvalidInput(f"There is no error {error!r}; there are {', '.join(_CODES)}.")
    return found


def brokers_of(given: int | Iterable[int] | None, known: Collection[int]) -> frozenset[int]:
    """Return the brokers given by their ids; all of them for None. Raises InvalidBrokers."""
    if given is None:
        return frozenset(known)
    chosen = frozenset((given,) if isinstance(given, int) else given)
    if unknown := sorted(chosen - set(known)):
        raise InvalidBrokers(
            f"There is no broker {unknown[0]}; there are {', '.join(map(str, sorted(known)))}."
        )
    if not chosen:
        raise InvalidBrokers("No broker is given; name at least one.")
    return chosen


def broker_behind(client_id: str | None) -> int | None:
    """Return the id of the broker that uses this client id for its own requests; None for clients."""
    found = None if client_id is None else _BETWEEN_BROKERS.fullmatch(client_id)
    return None if found is None else int(found[1])
