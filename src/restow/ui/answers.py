"""Answers in JSON, and what requests ask for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.responses import Response

from restow.ui.safety import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

_MOST = 10**12
_LETTERS = 500


class JsonAnswer(Response):
    """A document as JSON, in ASCII; a number that JSON cannot write becomes null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(_writable(content), separators=(",", ":")).encode()


def _writable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _writable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(each) for each in value]
    if isinstance(value, float) and value - value != 0:
        return None
    return value


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form that was sent; of several with one name the last."""
    body = await request.body()
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))


def number_of(request: Request, name: str, default: int | None = None) -> int:
    """Return a number that the address has; refuse what is none."""
    given = request.query_params.get(name)
    if given is None and default is not None:
        return default
    if given is None or not (given.isascii() and given.isdigit() and int(given) < _MOST):
        raise Refused(400, f"{name} has to be a number, like {name}=1")
    return int(given)


def text_of(request: Request, name: str, default: str | None = None) -> str:
    """Return a text that the address has."""
    given = request.query_params.get(name, default)
    if given is None:
        raise Refused(400, f"the address has no {name}")
    if len(given) > _LETTERS:
        raise Refused(400, f"{name} is longer than {_LETTERS} letters")
    return given
