"""Files of text, read and written with errors that name them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike


def read_text(path: str | PathLike[str]) -> str:
    """Return the text of a file, or say why it cannot be read."""
    try:
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{str(path)!r} is not text in UTF-8") from None


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write all of it, or say why it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(f"{str(path)!r} cannot be written: {reason}") from error


def one_per_line(records: Iterable[str]) -> str:
    """Return the records of a JSON array, each on a line of its own."""
    found = ",\n".join(records)
    return f"\n{found}" if found else ""
