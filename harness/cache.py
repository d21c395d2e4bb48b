"""Downloads of tests, kept between runs in the user's cache.

The folder is `$RESTOW_CACHE`, otherwise `$XDG_CACHE_HOME/restow`, otherwise `~/.cache/restow`:

    apache-kafka-3.9.1/       a thing; its folder exists only when all of it is there
    ivy/                      what Ivy downloaded, shared by all that it fetches
    fetching.lock             held by the one process that fetches

A download is gathered in a folder beside the final one, which is renamed at the very end. So an interrupted
fetch leaves nothing that looks complete.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from restow.pipeline.jars import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def fetched_once(name: str, what: str, fetch: Callable[[Path], Path]) -> Path:
    """Return the folder of that name in the cache; fetch it with an announcement if missing.

    `fetch` gets a folder to work in and returns the subfolder to keep.
    """
    cache = cache_dir()
    kept = cache / name
    if kept.is_dir():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / "fetching.lock"):
        if not kept.is_dir():
            sys.stderr.write(f"fetching {what} once into {cache} …\n")
            sys.stderr.flush()
            partial = Path(tempfile.mkdtemp(prefix=f"{name}.partial-", dir=cache))
            try:
                fetch(partial).rename(kept)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return kept


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a file for one process; the kernel releases it if that process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
