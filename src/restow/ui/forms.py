"""Fields of forms, with their labels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def choice(name: str, label: str, options: Iterable[str], chosen: str = "") -> str:
    """Return a choice of one among several."""
    shown = "".join(
        f"<option{' selected' if each == chosen else ''}>{escape(each)}</option>" for each in options
    )
    return f"<label>{escape(label)}<select name='{escape(name)}'>{shown}</select></label>"


def text_field(name: str, label: str, value: str = "", *, hint: str = "", example: str = "") -> str:
    """Return a field for text."""
    small = f"<small>{escape(hint)}</small>" if hint else ""
    return (
        f"<label>{escape(label)}{small}<input name='{escape(name)}' value='{escape(value)}' "
        f"placeholder='{escape(example)}' autocomplete='off'></label>"
    )


def check_field(name: str, label: str, *, on: bool = False, hint: str = "") -> str:
    """Return a box to tick."""
    small = f"<small>{escape(hint)}</small>" if hint else ""
    ticked = " checked" if on else ""
    return (
        f"<label class='field check'><input type='checkbox' name='{escape(name)}' value='yes'{ticked}>"
        f"{escape(label)}{small}</label>"
    )
