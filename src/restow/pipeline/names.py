"""Turn names from clusters into parts of paths.

A cluster id, topic or other name may hold slashes, dots or line breaks, or be empty. Each function maps
different names to different parts, and no part leaves its folder.

    file_name("../x")       %2E.%2Fx             our own files and folders: loads, plans, checkpoints
    partition_value("../x") ..%2Fx               the value of a `key=value` folder, as Spark has it
"""

from __future__ import annotations

import re
from hashlib import sha256

from restow.errors import InvalidInput

_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_HIDDEN = "._"
_NOTHING = "%"
_LONGEST, _KEPT = 180, 100

_ESCAPED_BY_SPARK = frozenset([*map(chr, range(1, 0x20)), *"\"#%'*/:=?\\{[]^", "\x7f"])
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
NOT_READ = "._COPYING_"
"""Spark ignores folders whose names end like this."""
LONGEST_VALUE_BYTES = 200
STAGING = "_collect/_staging"
"""Where a collector without Spark writes, below the lake."""


def file_name(name: str) -> str:
    """Return the name of a file or folder for this name.

    Letters, digits and `-_.` stay, except for a dot or underscore in front, which would hide the file. Other
    characters are percent-encoded as in addresses. A long name is cut and ends in a digest of all of it; the
    `~` before that is in no other file name.
    """
    if not name:
        return _NOTHING
    parts = [each if each in _SAFE else _percent(each) for each in name]
    if name[0] in _HIDDEN:
        parts[0] = _percent(name[0])
    encoded = "".join(parts)
    if len(encoded) <= _LONGEST:
        return encoded
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{encoded[:_KEPT]}~{digest}"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def partition_value(name: str) -> str:
    """Return the value part of a `key=value` folder, escaped as Spark does, or refuse the name.

    Spark cannot read back a folder whose name is empty, is null, or ends like an unfinished copy; and file
    systems limit the length of names.
    """
    escaped = "".join(f"%{ord(each):02X}" if each in _ESCAPED_BY_SPARK else each for each in name)
    if not name or name == NULL_VALUE or name.endswith(NOT_READ) or "\0" in name:
        raise InvalidInput(f"a lake cannot have a folder for {name[:100]!r}: no reader would find it")
    try:
        size = len(escaped.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"a lake cannot have a folder for {name[:100]!r}: it is not Unicode") from None
    if size > LONGEST_VALUE_BYTES:
        raise InvalidInput(f"a lake cannot have a folder for {name[:40]!r}…: the name takes {size} bytes")
    return escaped


def value_of(partition_value: str) -> str:
    """Return the name that a `key=value` folder stands for."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), partition_value)
