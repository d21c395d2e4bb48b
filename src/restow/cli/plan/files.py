"""Read and write plans: as Restow's file, or as Kafka's JSON with the rollback JSON."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow.cli.place.options import Format
from restow.cli.shared.connection import flags_for_the_same
from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import INCOMPLETE, Answer, save_document
from restow.cli.shared.options import section
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from restow.model import Plan

APPROVED = "Approval"

PlanFile: TypeAlias = Annotated[str, typer.Argument(metavar="PLAN", help="A plan file.")]
AsFormat: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="table|json|kafka",
        help="kafka: the JSON that kafka-reassign-partitions reads.",
        show_default=False,
    ),
]
Rollback: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Write the rollback as Kafka's JSON. Default with --format kafka -o F.json: F.rollback.json.",
    ),
]
Digest: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="SHA256",
        help="Refuse a plan with another digest; the first 12 digits are enough.",
        rich_help_panel=APPROVED,
    ),
]


@section(APPROVED)
class Approval:
    """What the plan of a command has to be approved by."""

    digest: Digest = None
    signed_by: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Refuse a plan without a signature of this public key (PEM, Ed25519)."
        ),
    ] = None

    def read(self, path: str) -> Plan:
        """Read the plan, and refuse one that is not approved so."""
        from restow.plan import read_plan

        return read_plan(path, digest=self.digest, signed_by=self.signed_by)


@section()
class PlanOutput:
    """The files and the printed output of a new plan."""

    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the plan to this file, in the --format."),
    ] = None
    form: AsFormat = Format.TABLE
    rollback: Rollback = None

    def check(self, *, as_json: bool) -> None:
        """Refuse contradictory flags, before the search starts."""
        if as_json and self.form is Format.KAFKA and self.output is None:
            raise InvalidInput("--json and --format kafka both want standard output: name a file with -o")

    @property
    def way_back(self) -> str | None:
        """Return the file of the rollback: the given one, or one beside Kafka's JSON."""
        if self.rollback is not None or self.form is not Format.KAFKA or self.output is None:
            return self.rollback
        return str(Path(self.output).with_suffix(f".rollback{Path(self.output).suffix or '.json'}"))

    def answer(
        self,
        plan: Plan,
        document: Callable[[], object],
        draw: Callable[[Console], None],
        bootstrap: str | None = None,
        *,
        as_json: bool,
        refused: bool = False,
    ) -> Answer:
        """Write the files, and return Kafka's JSON, Restow's document, or tables with the names of the files.

        `bootstrap` is where the cluster is, if the plan was not made from a file. A plan that is refused as
        incomplete is only shown.
        """
        as_json = as_json or self.form is Format.JSON
        if refused:
            return Answer(document=document, draw=draw, as_json=as_json, code=INCOMPLETE)
        self._save(plan)

        def drawn(console: Console) -> None:
            draw(console)
            self._draw_files(console, plan, bootstrap)

        if self.form is Format.KAFKA and self.output is None:
            from restow.plan.files.kafka_json import there_and_back

            return Answer(document=lambda: there_and_back(plan)[0], draw=drawn, as_json=True)
        return Answer(document=document, draw=drawn, as_json=as_json)

    def _save(self, plan: Plan) -> None:
        """Write the files. The rollback comes first, so that no plan is without one."""
        from restow.plan.files.kafka_json import there_and_back
        from restow.plan.files.reading import write_plan

        if self.way_back is not None:
            save_document(self.way_back, there_and_back(plan)[1])
        if self.output is not None and self.form is Format.KAFKA:
            save_document(self.output, there_and_back(plan)[0])
        elif self.output is not None:
            write_plan(plan, self.output)

    def _draw_files(self, console: Console, plan: Plan, bootstrap: str | None) -> None:
        """Print the plan's digest and the names of its files."""
        from restow.plan.files.approval import short
        from restow.plan.files.text import digest_of

        digest = digest_of(plan)
        lines = [f"digest {digest}"]
        if self.output is not None and self.form is Format.KAFKA:
            lines.append(f"Kafka's JSON is in {self.output}.")
        elif self.output is not None:
            lines.append(
                f"The plan is in {self.output}. Once it is approved (--throttle auto, or a rate like 50MB/s):"
            )
            partial = " --partial" if plan.leaves else ""
            where = "".join(f" {quote(each)}" for each in flags_for_the_same(bootstrap))
            approved = f"--digest {short(digest)} --throttle auto{partial}{where}"
            lines.append(f"  restow execute {quote(self.output)} {approved}")
        if self.way_back is not None:
            lines.append(f"The way back, as Kafka's JSON, is in {self.way_back}.")
        for line in lines:
            console.print(clean(line), soft_wrap=True)
