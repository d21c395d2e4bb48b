"""A plan as one HTML file with SVG pictures, without scripts or external files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.plan.show_view import times
from restow.cli.plan.view import GOAL_HEADS, goal_cells
from restow.execute.predict.prediction import error_told, range_told
from restow.html.page import ReportPage, Section, page, paragraph, table
from restow.html.plots import Line, changes, lines
from restow.model.showing import plan_tiles
from restow.plan.explain.view import CHANGE_HEADS, limits_told
from restow.plan.files.text import digest_of
from restow.sizes import human_bytes, human_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from restow.execute.journal.runs import Run
    from restow.execute.predict.prediction import Prediction
    from restow.model import Plan
    from restow.plan.explain.amounts import Amount
    from restow.plan.explain.explain import Explanation
    from restow.plan.explain.view import PlanView

_UNMET = 50


def page_of(
    plan: Plan,
    view: PlanView,
    told: Explanation | None = None,
    dirs: Sequence[Amount] = (),
    rate: int | None = None,
    run: Run | None = None,
) -> str:
    """Return the page. `told` and `dirs` are known only when the plan is made; a plan file has the rest.

    `rate` is the throttle for the expected time; None shows several usual ones. `run` is the plan's last run.
    """
    sections = [*_sections(plan, view, told, dirs)]
    if run is not None and run.ledger.prediction is not None:
        sections.insert(0, _run(run, run.ledger.prediction))
    return page(
        ReportPage(
            title=plan.title or "plan",
            lead=f"It {times(view, rate)}, if nothing else slows it down. "
            f"While it runs: up to {limits_told(plan.limits)}.",
            tiles=tuple(
                plan_tiles(plan, moves=view.moves, waves=view.waves, bytes_to_copy=view.bytes_to_copy)
            ),
            sections=tuple(sections),
            footer=f"cluster {plan.cluster_id}, digest {digest_of(plan)}",
        )
    )


def _sections(
    plan: Plan, view: PlanView, told: Explanation | None, dirs: Sequence[Amount]
) -> Iterator[Section]:
    if plan.leaves:
        left = table(("partition", "why"), [(each.partition, each.why) for each in plan.leaves], left=2)
        yield Section(title="Left behind", parts=(left,))
    yield _brokers(view, told)
    if view.dirs:
        yield Section(title="Log dirs that the plan names", parts=(_dirs(view),))
    if told is not None:
        if len(dirs) > len(told.brokers):
            yield Section(title="All log dirs", parts=(_amounts(dirs),))
        unmet = [each.text for each in told.unmet[:_UNMET]]
        goals = table(GOAL_HEADS, [goal_cells(each) for each in told.goals])
        yield Section(title="Goals", parts=(goals, *(paragraph(line, "bad") for line in unmet)))
        yield Section(title="Racks", parts=(_amounts(told.racks),))
        if told.notes:
            yield Section(title="Notes", parts=tuple(paragraph(note.text) for note in told.notes))
    yield Section(title="Moves", parts=(_moves(plan),))


def _run(run: Run, prediction: Prediction) -> Section:
    """Return what was predicted of the plan's last run, and what happened."""
    began_s, took_s = prediction.start_ms / 1000, run.ledger.took_s
    off = error_told(prediction.seconds.p50, took_s, run.ledger.steered, run.ledger.held, run.ledger.waited)
    took = "" if took_s is None else f" It took {human_duration(took_s)}{off}."
    drawn = [
        Line(name=name, points=tuple((began_s + at_s, copied) for at_s, copied in curve))
        for name, curve in (("copied", run.ledger.copied), ("predicted", prediction.curve))
    ]
    return Section(
        title="The last run, predicted and actual",
        note=f"Run {run.name} ended: {run.ledger.outcome}. Predicted: {range_told(prediction)}.{took}",
        parts=(lines(drawn, label="bytes copied over time, predicted and actual"),),
    )


def _brokers(view: PlanView, told: Explanation | None) -> Section:
    whole = [(str(each.broker), each.before.size_bytes, each.after.size_bytes) for each in view.brokers]
    if told is not None:
        whole = [(each.name, each.before_bytes, each.after_bytes) for each in told.brokers]
    partly = "" if told is not None or view.whole_cluster else ", as far as the plan's partitions go"
    picture = changes(
        [(f"broker {name}", before, after) for name, before, after in whole],
        label="bytes of each broker before and after",
    )
    return Section(
        title=f"Brokers{partly}",
        note="Bytes before (grey) and after.",
        parts=(picture, table(CHANGE_HEADS, [each.cells() for each in view.brokers])),
    )


def _dirs(view: PlanView) -> str:
    rows = [
        (f"broker {each.broker}", each.path, human_bytes(each.in_bytes), human_bytes(each.out_bytes))
        for each in view.dirs
    ]
    return table(("broker", "log dir", "comes in", "goes out"), rows, left=2)


def _amounts(amounts: Iterable[Amount]) -> str:
    return table(
        ("", "bytes before", "after", "replicas before", "after"),
        [
            (
                each.name,
                human_bytes(each.before_bytes),
                human_bytes(each.after_bytes),
                f"{each.before_replicas:,}",
                f"{each.after_replicas:,}",
            )
            for each in amounts
        ],
    )


def _moves(plan: Plan) -> str:
    return table(
        ("partition", "before", "after", "to copy", "why"),
        [
            (
                move.partition,
                ", ".join(map(str, move.before)),
                ", ".join(map(str, move.after)),
                human_bytes(move.told_bytes),
                move.reason,
            )
            for move in plan.moves
        ],
    )
