"""Give freed memory back to the system, and look for no garbage where none is made."""

from __future__ import annotations

import ctypes
import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024


def keep_no_large_blocks() -> None:
    """Let the system have large blocks as soon as they are freed, for servers that live long.

    glibc raises the size of what it calls large with every such block that is freed, and keeps smaller ones.
    """
    try:
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BYTES)
    except (OSError, AttributeError, TypeError):
        return


def give_back() -> None:
    """Let the system have the memory that is free. glibc keeps it otherwise; other libraries need no hint."""
    gc.collect()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return
    trim(0)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Look for no cycles meanwhile: among many live objects, that takes longer than to make them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
