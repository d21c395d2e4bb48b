"""Fields of forms, with their labels."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.ui.commands import CommandField, CommandForm


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


def search_form(path: str, search: str, sort: str, sorts: Iterable[str]) -> str:
    """Return the form above a list: which rows to show, and in which order."""
    return (
        f"<form class='row' method='get' action='{path}' role='search'>"
        f"{text_field('search', 'Name contains', search)}{choice('sort', 'Sort by', sorts, sort)}"
        "<button>Search</button></form>"
    )


def check_field(name: str, label: str, *, on: bool = False, hint: str = "") -> str:
    """Return a box to tick."""
    small = f"<small>{escape(hint)}</small>" if hint else ""
    ticked = " checked" if on else ""
    return (
        f"<label class='field check'><input type='checkbox' name='{escape(name)}' value='yes'{ticked}>"
        f"{escape(label)}{small}</label>"
    )


def command_fields(form: CommandForm, given: Mapping[str, str]) -> str:
    """Return the fields of a command: its arguments first, then its options by section, folded."""
    sections: dict[str, list[CommandField]] = {}
    for each in form.fields:
        sections.setdefault("" if each.required or not each.section else each.section, []).append(each)
    shown = []
    for title, fields in sorted(sections.items(), key=lambda pair: pair[0] != ""):
        inner = "".join(
            _command_field(each, given) for each in sorted(fields, key=lambda each: not each.required)
        )
        filled = any(given.get(each.name) for each in fields)
        body = f"<div class='fields grid'>{inner}</div>"
        if title:
            body = f"<details{' open' if filled else ''}><summary>{escape(title)}</summary>{body}</details>"
        shown.append(f"<fieldset>{body}</fieldset>" if title else body)
    return "".join(shown)


def _command_field(field: CommandField, given: Mapping[str, str]) -> str:
    label = field.name.replace("_", " ")
    if field.is_switch:
        on = given.get(field.name) == "yes" if given else field.default == "yes"
        return check_field(field.name, label, on=on, hint=field.about)
    value = given.get(field.name, field.default)
    if field.many:
        return (
            f"<label>{escape(label)}<small>{escape(field.about)} One in each line.</small>"
            f"<textarea name='{escape(field.name)}' rows='2' placeholder='{escape(field.example)}'>"
            f"{escape(value)}</textarea></label>"
        )
    return text_field(field.name, label, value, hint=field.about, example=field.example)
