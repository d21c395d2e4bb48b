"""Parse properties from Java's files, from the command line and from the environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from restow.client.property_names import KNOWN
from restow.errors import InvalidInput
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ENVIRONMENT = "RESTOW_CLIENT_"
"""RESTOW_CLIENT_SECURITY_PROTOCOL is security.protocol."""

_SECRET = re.compile(r"password|passphrase|jaas|keystore\.key$|secret|token$")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_CONTINUES = re.compile(r"(?<!\\)(?:\\\\)*\\$")
_NAME_ENDS = re.compile(r"(?<!\\)(?:\\\\)*(?P<gap>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")


@dataclass(frozen=True, slots=True)
class Property:
    """A value and its source. A possible secret is not shown."""

    value: str
    where: str


def read_properties(path: str) -> dict[str, Property]:
    """Read a properties file of Kafka's. If a name occurs twice the last counts, as in Java."""
    try:
        text = Path(path).read_bytes().decode("latin-1")
    except OSError as error:
        raise InvalidInput(f"the file {path!r} cannot be read: {error.strerror}") from error
    found = {}
    for number, line in _logical_lines(text):
        end = _NAME_ENDS.search(line)
        name = _unescaped(line[: end.start("gap")] if end else line, path, number)
        value = _unescaped(line[end.end() :] if end else "", path, number)
        found[name] = Property(_guarded(name, value), f"{path}:{number}")
    return found


def from_flags(given: Iterable[str]) -> dict[str, Property]:
    """Parse name=value arguments."""
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(
                "--command-property: what is given is not NAME=VALUE; write it like security.protocol=SSL"
            )
        found[name.strip()] = value
    return from_mapping(found, "--command-property")


def from_mapping(given: Mapping[str, str], where: str) -> dict[str, Property]:
    """Return properties by name; `where` names their source in errors."""
    return {name: Property(_guarded(name, value), where) for name, value in given.items()}


def from_environment(environment: Mapping[str, str]) -> dict[str, Property]:
    """Return all variables that begin with RESTOW_CLIENT_, with dots for underscores."""
    found = {}
    for variable, value in sorted(environment.items()):
        if variable.startswith(ENVIRONMENT):
            name = variable.removeprefix(ENVIRONMENT).lower().replace("_", ".")
            found[name] = Property(_guarded(name, value), variable)
    return found


def _guarded(name: str, value: str) -> str:
    """Hide a possible secret, and any value of a name that Kafka does not know.

    If a password loses its backslash, the rest is on a line of its own, whose first word looks like a name.
    """
    return value if name in KNOWN and not _SECRET.search(name) else Secret(value)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments and empty ones; a backslash at the end continues a line."""
    lines = re.split(r"\r\n|\r|\n", text)
    at = 0
    while at < len(lines):
        first, line = at + 1, lines[at].lstrip(" \t\f")
        at += 1
        if not line or line[0] in "#!":
            continue
        while _CONTINUES.search(line):
            line = line[:-1] + (lines[at].lstrip(" \t\f") if at < len(lines) else "")
            at += 1
        yield first, line


def _unescaped(text: str, path: str, number: int) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] == "u":
            raise InvalidInput(f"{path}:{number}: after \\u come four hexadecimal digits")
        return _ESCAPED.get(match[2], match[2])

    return _ESCAPE.sub(one, text)


def has_secrets(found: Mapping[str, Property]) -> bool:
    """Return whether the properties themselves hold a secret; a reference to a file is none."""
    return any(
        _SECRET.search(name) and not name.endswith(".file") and not each.value.startswith("${")
        for name, each in found.items()
    )
