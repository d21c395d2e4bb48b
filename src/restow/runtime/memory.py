"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import gc

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
