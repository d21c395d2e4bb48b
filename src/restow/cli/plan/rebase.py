"""`restow plan rebase`: keep a plan's targets, start from the cluster's present state."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from restow.cli.plan.files import Approval, PlanFile, PlanOutput
from restow.cli.plan.options import Partial
from restow.cli.shared.connection import AsJson
from restow.cli.shared.drawing import clean, put
from restow.cli.shared.frame import Answer
from restow.cli.snapshot.source import SnapshotSource
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from restow.model import Plan
    from restow.plan.drift import Difference
    from restow.plan.explain.view import PlanView

ABOUT = "Renew a plan from the cluster's present state."
HELP = """Make a plan with the same targets and limits as another, from the cluster's present state.

A plan is pinned to the replicas and topics that it was made from; `restow execute` refuses it once they have
changed. The new plan covers the remaining moves, without those that are done or whose partitions are gone. A
partition whose topic was recreated stays behind and makes the plan incomplete: it is written only with
--partial. The new plan has another digest and needs its own approval. The cluster does not change.

\b
Examples:
  $ restow plan rebase plan.json -b localhost:9092 -o new.json
  $ restow plan rebase plan.json --snapshot now.json -o new.json
"""


def command(
    *,
    file: PlanFile,
    source: SnapshotSource,
    approval: Approval,
    output: PlanOutput,
    partial: Partial = False,
    as_json: AsJson = False,
) -> Answer:
    from restow.cli.plan.show_view import document
    from restow.plan.drift import differences, rebase
    from restow.plan.explain.view import view_of

    output.check(as_json=as_json)
    old = approval.read(file)
    taken = source.read()
    plan = rebase(old, taken, created_ms=taken.taken_ms)
    changed = differences(old, taken)
    view = view_of(plan, taken)
    refused = bool(plan.leaves) and not partial

    def told() -> dict[str, object]:
        return document(plan, view) | {"changed": [str(each) for each in changed]}

    def drawn(console: Console) -> None:
        _draw(console, plan, view, changed, refused=refused)

    return output.answer(plan, told, drawn, source.address, as_json=as_json, refused=refused)


def _draw(
    console: Console, plan: Plan, view: PlanView, changed: Sequence[Difference], *, refused: bool
) -> None:
    from restow.cli.plan.show_view import draw
    from restow.sizes import some

    kinds = Counter(each.drift for each in changed)
    for drift, number in kinds.items():
        which = some(each.partition for each in changed if each.drift is drift)
        line = f"{count(number, 'partition')} {_were(number, drift.value)}: {which}"
        console.print(clean(line), style="yellow", soft_wrap=True)
    if not changed:
        put(console, "The cluster is as the plan found it: the old plan can be executed.", style="dim")
    draw(console, plan, view)
    if refused:
        put(console, "No file was written. Make a plan for these, or take the rest with --partial.")


def _were(number: int, what: str) -> str:
    """Return the verb phrase for one partition or for several."""
    if number == 1:
        return what
    for one, several in (("does ", "do "), ("is ", "are "), ("has ", "have ")):
        if what.startswith(one):
            return what.replace(one, several, 1)
    return what
