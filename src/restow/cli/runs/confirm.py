"""Ask before something is changed: on a terminal by a question, elsewhere `--yes` has to be said."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from restow.cli.shared.frame import FAILED, console
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console


def can_ask(*, as_json: bool) -> bool:
    """Whether somebody sits at a terminal, to read a question and to answer it."""
    return not as_json and sys.stdout.isatty() and sys.stdin.isatty()


def confirm(question: str, draw: Callable[[Console], None]) -> None:
    """Show what would happen and go on only if the answer is yes. Only where `can_ask`."""
    page = console()
    draw(page)
    try:
        answer = input(f"{question} [y/N] ").strip().lower()
    except EOFError:
        answer = ""
    if answer not in ("y", "yes"):
        page.print("Nothing was changed.")
        raise typer.Exit(FAILED)


def demand_yes(what: str) -> None:
    """Refuse where nobody can be asked and `--yes` was not given."""
    raise InvalidInput(
        f"{what} changes the cluster, and there is no terminal to ask on: add --yes to do it, or --check to "
        "look at everything without changing anything"
    )
