"""Give freed memory back to the system."""

from __future__ import annotations

import ctypes
import gc


def give_back() -> None:
    """Let the system have the memory that is free. glibc keeps it otherwise; other libraries need no hint."""
    gc.collect()
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return
    trim(0)
