"""Files of text that commands write, with errors that name them."""

from __future__ import annotations

from pathlib import Path


def write_text(path: str, text: str) -> None:
    """All of it, or why it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(f"{path!r} cannot be written: {reason}") from error
