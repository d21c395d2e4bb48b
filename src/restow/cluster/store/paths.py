"""Node paths, by ZooKeeper's rules."""

from __future__ import annotations

import re
from functools import lru_cache

from restow.cluster.store.errors import InvalidPath

ROOT = "/"
_FORBIDDEN = "\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff"
_VALID = re.compile(rf"(?:/(?!\.{{1,2}}(?:/|\Z))[^/{_FORBIDDEN}]+)+|/")


@lru_cache(maxsize=16_384)
def check_path(path: str) -> str:
    """Return the path if it is valid."""
    if _VALID.fullmatch(path):
        return path
    if not path.startswith("/"):
        raise InvalidPath(f"{path!r} is not a path: it does not begin with /", path=path)
    if match := re.search(f"[{_FORBIDDEN}]", path):
        raise InvalidPath(f"{path!r} is not a path: no name can have {match.group()!r}", path=path)
    raise InvalidPath(f"{path!r} is not a path: a name in it is empty, . or ..", path=path)


def parent_of(path: str) -> str:
    """Return the parent's path. Not for the root."""
    return path[: path.rindex("/")] or ROOT
