"""Plans: what was made, the form for a new one, one plan before it is run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from restow.html.page import Section, link, paragraph, section, table, tiles, titled
from restow.html.plots import changes
from restow.model.showing import plan_tiles
from restow.plan.explain.view import CHANGE_HEADS, limits_told, times_told
from restow.sizes import count, human_bytes
from restow.ui.addresses import plan_address
from restow.ui.forms import command_fields, text_field
from restow.ui.frame import Shown, address, at, hidden, live_parts, pager
from restow.ui.lists import paged
from restow.ui.moves import EVERY_MOVE
from restow.ui.pages.links import ids, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.model import Plan
    from restow.plan.explain.view import BrokerChange
    from restow.ui.commands import CommandForm, CommandLine
    from restow.ui.jobs import CommandJob
    from restow.ui.large_files import ShownPlan
    from restow.ui.lists import Paged
    from restow.ui.moves import MoveFilter, ShownMove
    from restow.ui.plan_store import StoredPlan
    from restow.ui.sessions import UiSession

ROWS = 100
_DRAWN = 60
_NAMED = 20
_RATES = (10_000_000, 50_000_000, 200_000_000)


def plans_page(
    plans: Sequence[StoredPlan], commands: CommandLine, session: UiSession | None, number: int
) -> Shown:
    """Return the list of plans, with the ways to a new one for those who may."""
    found = paged(plans, number, ROWS)
    rows = [
        (
            link(each.title, plan_address(each.id)),
            at(each.request.get("at_ms")),
            str(each.request.get("who", "")),
            asked_for(each.request),
            "ready" if each.is_there else "failed" if each.wrong else "not done",
            f"{len(each.rehearsals()):,}",
        )
        for each in found.rows
    ]
    heads = ("plan", "made", "by", "asked for", "state", "rehearsals")
    listed = table(heads, rows, left=5, caption="plans") if rows else paragraph("No plan was made here yet.")
    turn = pager("/plans", found.number, found.pages)
    new = _ways(commands, session) if session is not None else ""
    compare = _compare_form([each for each in plans if each.is_there][:ROWS])
    return Shown(title="Plans", body=f"{new}<section><h2>Made here</h2>{listed}{turn}</section>{compare}")


def asked_for(request: Mapping[str, Any]) -> str:
    """Return the options that a plan or rehearsal was asked for with."""
    given = dict(request.get("given", {}))
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in given.items() if value)


def _ways(commands: CommandLine, session: UiSession) -> str:
    kinds = "".join(
        f"<li>{link(each.name, address('/plans/new', kind=each.name))}: {escape(each.about)}</li>"
        for each in commands.plans
    )
    upload = (
        f"<form class='row' data-upload method='post' action='/plans/upload'>{hidden(session)}"
        "<label>A plan file, or Kafka's reassignment JSON"
        "<input type='file' name='file' accept='.json'></label><button>Upload</button></form>"
    )
    return (
        f"<section><h2>New plan</h2>{paragraph('Planning changes nothing in the cluster.')}<ul>{kinds}</ul>"
        f"{upload}</section>"
    )


def _compare_form(plans: Sequence[StoredPlan]) -> str:
    if len(plans) < 2:
        return ""
    fields = "".join(
        f"<label>{label}<select name='{name}'>{_options(plans, chosen)}</select></label>"
        for chosen, (name, label) in enumerate((("first", "First plan"), ("second", "Second plan")))
    )
    return (
        f"<section><h2>Compare</h2><form class='row' method='get' action='/plans/compare'>{fields}"
        "<button>Compare</button></form></section>"
    )


def _options(plans: Sequence[StoredPlan], chosen: int) -> str:
    return "".join(
        f"<option value='{each.id}'{' selected' if number == chosen else ''}>"
        f"{escape(each.title)} ({each.id})</option>"
        for number, each in enumerate(plans)
    )


def new_plan_page(form: CommandForm, session: UiSession, given: Mapping[str, str], wrong: str = "") -> Shown:
    """Return the form for one kind of plan, with what was filled in and what was wrong with it."""
    said = paragraph(wrong, "bad") if wrong else ""
    return Shown(
        title=f"Plan: {form.name}",
        status=400 if wrong else 200,
        body=(
            f"<section>{paragraph(form.about)}{said}<form method='post' action='/plans'>"
            f"{hidden(session, {'kind': form.name})}{command_fields(form, given)}"
            "<button>Make the plan</button></form></section>"
        ),
    )


def job_parts(job: CommandJob) -> dict[str, str]:
    """Return what to know of a command that is not done; the page goes on by itself when it is."""
    if job.is_over:
        return {"go": job.leads_to}
    waits = "" if job.has_turn else " It waits for its turn."
    return {
        "job": f"<section><p>{escape(job.title)}: under way since {at(job.started_ms)}.{waits}</p></section>"
    }


def unfinished_page(stored: StoredPlan, job: CommandJob | None) -> Shown:
    """Return the page of a plan that is not there: being made, refused, or interrupted."""
    if job is not None and not job.is_over:
        body = live_parts(job_parts(job))
        return Shown(title=stored.title, body=body, feed=f"/events?page=job&job={job.id}", incomplete=True)
    told = stored.told()
    left = table(
        ("partition", "why"),
        [(each["partition"], each["why"]) for each in (told or {}).get("leaves", [])],
        left=2,
    )
    if told and told.get("leaves"):
        note = (
            "The plan would be incomplete, so it was not written. Remove what hinders it, or tick `partial`."
        )
        return Shown(title=stored.title, body=titled("Left behind", left, note=note))
    wrong = stored.wrong or "the server was stopped while it was being made: make it again"
    return Shown(title=stored.title, body=f"<section>{paragraph(wrong, 'bad')}</section>")


def plan_page(
    stored: StoredPlan,
    found: ShownPlan,
    brokers: Sequence[BrokerChange],
    moves: Paged[ShownMove],
    wanted: MoveFilter,
    actions: str,
) -> Shown:
    """Return one plan: what it changes, why, and what it may cost; and a page of the moves that are wanted.

    `actions` are the forms of an operator.
    """
    told, plan = stored.told() or {}, found.head
    facts = (
        ("cluster", plan.cluster_id),
        ("digest", found.digest),
        ("takes at least", f"{times_told(found.view, _RATES)} per broker"),
        ("limits", limits_told(plan.limits)),
        ("asked for by", str(stored.request.get("who", ""))),
    )
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    where = plan_address(stored.id)
    files = " ".join(
        link(name, address(f"{where}/download", form=form))
        for name, form in (("Plan file", "restow"), ("Kafka's JSON", "kafka"), ("Rollback", "rollback"))
    )
    parts = [
        tiles(
            plan_tiles(
                plan, moves=len(found.moves), waves=found.view.waves, bytes_to_copy=found.bytes_to_copy
            )
        ),
        f"<section><h2>Plan</h2><dl class='facts'>{rows}</dl><p>Download: {files}</p></section>",
        *map(section, _sections(plan, told)),
        titled("Brokers", *_brokers(brokers), note="Bytes before (grey) and after."),
        actions,
        f"<section id='moves'><h2>Moves: {len(found.moves):,}</h2>",
        _moves(stored, found, moves, wanted),
        "</section>",
    ]
    return Shown(title=plan.title or stored.title, body="".join(parts))


def _sections(plan: Plan, told: Mapping[str, Any]) -> Iterator[Section]:
    if plan.leaves:
        left = [(str(each.partition), each.why) for each in plan.leaves]
        yield Section(title="Left behind", parts=(table(("partition", "why"), left, left=2),))
    if goals := told.get("goals"):
        heads = ("goal", "allowed", "most of a share", "then", "least of a share", "then", "out of band")
        rows = [_goal_row(each) for each in goals]
        unmet = [
            paragraph(f"{each['goal']} of broker {each['broker']}: {each['because']}", "bad")
            for each in told.get("unmet", [])[:_NAMED]
        ]
        yield Section(title="Goals", parts=(table(heads, rows, caption="goals"), *unmet))
    notes = [str(each["text"]) for each in (*told.get("warnings", []), *told.get("notes", []))]
    if notes:
        yield Section(title="Notes", parts=tuple(map(paragraph, notes)))


def _goal_row(goal: Mapping[str, Any]) -> tuple[str, ...]:
    allowed = goal.get("allowed")
    before, after = goal["before"], goal["after"]
    return (
        str(goal["name"]),
        "any" if allowed is None else f"{allowed[0]:.2f} to {allowed[1]:.2f}",
        f"{before[0]:.2f}",
        f"{after[0]:.2f}",
        f"{before[1]:.2f}",
        f"{after[1]:.2f}",
        f"{goal['out_of_band']:,}",
    )


def _brokers(brokers: Sequence[BrokerChange]) -> tuple[str, ...]:
    """Return the brokers before and after; of many, those that change most."""
    shown = brokers
    if len(shown) > _DRAWN:
        shown = sorted(shown, key=lambda each: -(each.received_bytes + each.sent_bytes))[:_DRAWN]
    picture = changes(
        [(f"broker {each.broker}", each.before.size_bytes, each.after.size_bytes) for each in shown],
        label="bytes of each broker before and after",
    )
    more = len(brokers) - len(shown)
    told = paragraph(f"and {more:,} brokers that change less") if more else ""
    return picture, table(CHANGE_HEADS, [each.cells() for each in shown], caption="brokers"), told


def _moves(stored: StoredPlan, plan: ShownPlan, found: Paged[ShownMove], wanted: MoveFilter) -> str:
    where, broker = plan_address(stored.id), "" if wanted.broker is None else str(wanted.broker)
    rows = [
        (
            partition_link(each.partition),
            ids(each.before),
            ids(each.after),
            human_bytes(each.bytes_to_copy),
            each.reason,
        )
        for each in found.rows
    ]
    heads = ("partition", "from", "to", "to copy", "why")
    turn = pager(where, found.number, found.pages, part="moves", topic=wanted.topic, broker=broker)
    form = (
        f"<form class='row' method='get' action='{where}#moves' role='search'>"
        f"{text_field('topic', 'Topic contains', wanted.topic)}"
        f"{text_field('broker', 'From or to broker', broker, example='3')}<button>Search</button></form>"
    )
    told = paragraph(f"{found.total:,} of {count(len(plan.moves), 'move')}") if wanted != EVERY_MOVE else ""
    shown = table(heads, rows, left=5, caption="moves in their order") if rows else ""
    return form + told + shown + turn


def approve_form(
    stored: StoredPlan,
    plan: ShownPlan,
    form: CommandForm,
    session: UiSession,
    given: Mapping[str, str],
    wrong: str = "",
) -> str:
    """Return the form that approves a plan and begins its run."""
    said = paragraph(wrong, "bad") if wrong else ""
    what = (
        f"It changes cluster {plan.head.cluster_id}: {count(len(plan.moves), 'partition')} move, and "
        f"{human_bytes(plan.bytes_to_copy)} are copied. The run is a process of its own: it goes on when "
        "this page or its server ends, and can be paused, cancelled and undone."
    )
    return (
        f"<section id='approve'><h2>Approve and run</h2>{paragraph(what)}{said}"
        f"<form method='post' action='{plan_address(stored.id)}/runs'>{hidden(session)}"
        f"{command_fields(form, given)}<div class='row'>"
        f"{text_field('cluster', 'Type the id of the cluster to approve', hint=plan.head.cluster_id)}"
        "<button class='danger'>Run this plan</button></div></form></section>"
    )
