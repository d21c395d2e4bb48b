"""Commands as forms: what they can be asked, and the arguments that a filled form makes.

The pages plan, rehearse and run by the commands themselves, in processes of their own. So they have the same
options, and what a command refuses, the page cannot do.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_LETTERS = 2_000


@frozen
class CommandField:
    """One option or argument of a command."""

    name: str
    flag: str
    """Empty for an argument, which has no flag."""
    about: str
    example: str = ""
    section: str = ""
    is_switch: bool = False
    off: str = ""
    """The flag that turns a switch off which is on by default."""
    default: str = ""
    """"yes" for a switch that is on."""
    required: bool = False
    many: bool = False
    """Whether it may be given several times; one in each line."""

    def arguments(self, given: str | None) -> list[str]:
        """Return what this field adds to the command line. A value never becomes a flag."""
        if self.is_switch:
            if (given is not None) == (self.default == "yes"):
                return []
            return [self.flag if given is not None else self.off]
        value = (given or "").strip()
        if len(value) > _MOST_LETTERS:
            raise InvalidInput(f"{self.name}: this is longer than {_MOST_LETTERS:,} letters")
        if any(not letter.isprintable() and letter not in "\r\n\t" for letter in value):
            raise InvalidInput(f"{self.name}: this has control characters")
        if not value and self.required:
            raise InvalidInput(f"{self.name} is missing: {self.about}")
        values = value.splitlines() if self.many else [value]
        each = [part.strip() for part in values if part.strip()]
        return [f"{self.flag}={part}" for part in each] if self.flag else each


@frozen
class CommandForm:
    """A command, and what people may fill in."""

    words: tuple[str, ...]
    about: str
    fields: tuple[CommandField, ...]

    @property
    def name(self) -> str:
        return self.words[-1]

    def arguments(self, given: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the options and the arguments that a filled form makes."""
        options = [part for each in self.fields if each.flag for part in each.arguments(given.get(each.name))]
        others = [
            part for each in self.fields if not each.flag for part in each.arguments(given.get(each.name))
        ]
        return options, others


@frozen
class CommandLine:
    """How this server calls commands: on its cluster, with its journals."""

    plans: tuple[CommandForm, ...] = ()
    rehearse: CommandForm | None = None
    execute: CommandForm | None = None
    cluster: tuple[str, ...] = ()
    """The flags that lead to the cluster."""
    snapshot: tuple[str, ...] = ()
    """The flags that lead to a snapshot: those of the cluster, or a file."""
    journal: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    program: tuple[str, ...] = (sys.executable, "-m", "restow")

    def plan_form(self, name: str) -> CommandForm:
        """Return the form of one kind of plan."""
        for each in self.plans:
            if each.name == name:
                return each
        raise InvalidInput(f"there is no kind of plan called {name!r}")

    def make_plan(self, form: CommandForm, given: Mapping[str, str], to: str) -> list[str]:
        """Return the command line that makes a plan into a file."""
        options, others = form.arguments(given)
        return [
            *self.program,
            *form.words,
            *options,
            *self.snapshot,
            *self.load,
            "-o",
            to,
            "--json",
            "--",
            *others,
        ]

    def read_kafka_json(self, path: str, to: str) -> list[str]:
        """Return the command line that makes a plan of Kafka's reassignment JSON."""
        return [*self.program, "plan", "from-json", *self.snapshot, "-o", to, "--json", "--", path]

    def show(self, path: str) -> list[str]:
        """Return the command line that reads and judges a plan file."""
        return [*self.program, "show", "--json", "--", path]

    def rehearse_plan(self, given: Mapping[str, str], plan: str) -> list[str]:
        """Return the command line that rehearses a plan."""
        options, _ = _form(self.rehearse).arguments(given)
        flags = (*options, *self.snapshot, *self.load, *self.journal)
        return [*self.program, "rehearse", *flags, "--json", "--", plan]

    def check_plan(self, plan: str, digest: str) -> list[str]:
        """Return the command line that says whether a run of a plan could begin."""
        flags = (*self.cluster, *self.journal, f"--digest={digest}")
        return [*self.program, "execute", *flags, "--check", "--json", "--", plan]

    def execute_plan(self, given: Mapping[str, str], plan: str, digest: str) -> list[str]:
        """Return the command line that carries out a plan, if it is still the one that was approved."""
        options, _ = _form(self.execute).arguments(given)
        flags = (*options, *self.cluster, *self.journal, f"--digest={digest}")
        return [*self.program, "execute", *flags, "--yes", "--json", "--", plan]

    def of_run(self, command: str, run: str, *flags: str) -> list[str]:
        """Return the command line of `resume`, `undo` or `cancel` for one run."""
        return [*self.program, command, f"--run={run}", *flags, *self.cluster, *self.journal, "--json"]


def _form(form: CommandForm | None) -> CommandForm:
    if form is None:
        raise InvalidInput("this server cannot do that")
    return form
