"""The frame around every command: it prints answers and reports errors.

A command returns an `Answer`, which is printed as text or JSON. An error becomes one message on stderr and an
exit code:

    0  done     1  failed     2  wrong arguments     3  the plan is incomplete
    130  interrupted     141  the reader of stdout has gone
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import contextmanager
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from restow._frozen import frozen
from restow.cli.shared.connection import add_connection_options
from restow.cli.shared.drawing import clean_lines, put
from restow.errors import InvalidInput, RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

FAILED = 1
ASKED_WRONGLY = 2
INCOMPLETE = 3
"""The plan leaves partitions behind, and `--partial` was not given."""
INTERRUPTED = 128 + 2
NOBODY_READS = 128 + 13
"""The exit code of a program that SIGPIPE ended, as in `restow … | head`."""


@frozen
class Answer:
    """A command's result: a JSON-ready document, and a function that draws it."""

    document: Callable[[], object]
    draw: Callable[[Console], None]
    as_json: bool
    code: int = 0
    """The exit code of the command after it has printed this."""


def line(text: str, document: object, *, as_json: bool) -> Answer:
    """Return an answer of one sentence. It may quote foreign names, which are cleaned."""
    return Answer(document=lambda: document, draw=lambda console: put(console, text), as_json=as_json)


def show(answer: Answer) -> None:
    """Print an answer and flush, so that a closed pipe fails here."""
    if answer.as_json:
        show_document(answer.document())
    else:
        answer.draw(console())
        sys.stdout.flush()


def show_document(document: object) -> None:
    """Print one line of JSON and flush: a script may wait for it."""
    sys.stdout.write(_as_json(document))
    sys.stdout.flush()


def _as_json(document: object) -> str:
    """Encode in one piece, which is many times faster, and in ASCII, which any terminal can print."""
    return json.dumps(document) + "\n"


def save_document(path: str, document: object) -> None:
    """Write the JSON document to a file."""
    try:
        Path(path).write_text(_as_json(document), encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OSError(f"{path!r} cannot be written: {reason}") from error


def console() -> Console:
    """Return rich's console on today's stdout. It honours NO_COLOR, TERM and COLUMNS, and colours no pipe.

    It removes escape sequences and control characters that rich did not make. In a pipe without COLUMNS,
    lines have any length.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Clean(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                if segment.control or segment.text.isprintable() or segment.text == "\n":
                    yield segment
                else:
                    yield Segment(clean_lines(segment.text), segment.style)

    no_width = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    return Clean(highlight=False, emoji=False, markup=False, soft_wrap=no_width)


def use_colour(stream: Any) -> bool:
    """Return whether to colour lines that are printed without rich, by the same rule."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def complain(message: str) -> None:
    """Print one error on stderr, in the format of the option parser's errors."""
    _to_stderr("Error:", "1;31", message)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    _to_stderr("Warning:", "1;33", message)


def _to_stderr(label: str, colour: str, message: str) -> None:
    shown = f"\x1b[{colour}m{label}\x1b[0m" if use_colour(sys.stderr) else label
    # A message may quote a broker or a file, which must not steer the terminal.
    text = f"{shown} {clean_lines(message)}\n"
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))


class _HelpInSections:
    """Help with options under headings, and colour on a terminal.

    It does without rich, because importing rich takes longer than all of this.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        add_connection_options(self)  # type: ignore[arg-type]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):  # type: ignore[attr-defined]
            record = param.get_help_record(ctx)
            if record is not None:
                kind = "Options" if param.param_type_name == "option" else "Arguments"
                sections.setdefault(getattr(param, "rich_help_panel", None) or kind, []).append(record)
        for title, records in sorted(sections.items(), key=lambda section: section[0] == "Options"):
            with formatter.section(title):
                formatter.write_dl(records)
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)

    def get_help(self, ctx: Any) -> str:
        text: str = super().get_help(ctx)  # type: ignore[misc]
        if not use_colour(sys.stdout):
            return text
        lines = text.split("\n")
        goes_on = [False, *(line.endswith("\\") for line in lines)]
        return "\n".join(starmap(_coloured, zip(lines, goes_on, strict=False)))


def _coloured(line: str, goes_on: bool) -> str:
    words = line.lstrip()
    if words and words == line and line.endswith(":"):
        return f"\x1b[1m{line}\x1b[0m"
    if words.startswith("$ ") or goes_on:
        return f"\x1b[32m{line}\x1b[0m"
    if words.startswith("-") and "  " in words:
        flags, gap, rest = words.partition("  ")
        return f"{line[: len(line) - len(words)]}\x1b[36m{flags}\x1b[0m{gap}{rest}"
    return line


class Command(_HelpInSections, TyperCommand):
    """A command: its arguments, and a function that returns an `Answer`."""


class CommandGroup(_HelpInSections, TyperGroup):
    """Several commands under one noun, which may itself be a command."""


class Root(CommandGroup):
    """The outermost group: it prints the command's answer and reports its error."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {}
    """The commands under headings, as the help lists them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for heading, names in self.sections.items():
            rows = [(name, self.commands[name].get_short_help_str(limit=100)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _clean_complaints():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        debug = bool(ctx.params.get("debug"))
        if logging.lastResort is not None:
            logging.lastResort.setFormatter(CleanFormatter())
        try:
            with _clean_complaints():
                answer = super().invoke(ctx)
            if isinstance(answer, Answer):
                show(answer)
        except (typer.Exit, typer.Abort, typer.TyperException, KeyboardInterrupt):
            raise
        except BrokenPipeError:
            let_go_of_stdout()
            raise typer.Exit(NOBODY_READS) from None
        except Exception as error:
            if debug:
                raise
            complain(_sentence(error))
            raise typer.Exit(ASKED_WRONGLY if isinstance(error, InvalidInput) else FAILED) from None
        if isinstance(answer, Answer) and answer.code:
            raise typer.Exit(answer.code)
        return None


@contextmanager
def _clean_complaints() -> Iterator[None]:
    """Clean the arguments that the option parser quotes in its errors."""
    try:
        yield
    except typer.TyperException as error:
        message = clean_lines(error.format_message())
        error.format_message = lambda: message  # type: ignore[method-assign]
        raise


class CleanFormatter(logging.Formatter):
    """Cleans log lines, because they quote what clients sent."""

    def format(self, record: logging.LogRecord) -> str:
        return clean_lines(super().format(record))


def _sentence(error: Exception) -> str:
    if isinstance(error, RestowError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: ask for fewer partitions, brokers or members"
    kind = type(error).__name__
    return f"unexpected {kind}: {error}. This is a bug in restow; `restow --debug …` shows where"


def let_go_of_stdout() -> None:
    """Discard buffered output after the reader has gone, so that Python prints no error at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    finally:
        os.close(nowhere)
