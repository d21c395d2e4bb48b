"""A rehearsal: how long it takes and what limits it, moves and disks over time, what a fault would do."""

from __future__ import annotations

from html import escape
from math import inf
from typing import TYPE_CHECKING, Any

from restow.html.page import Section, Tile, link, paragraph, section, table, tiles, titled
from restow.html.plots import Line, lines
from restow.plan.flow.constants import known_lines
from restow.sizes import count, human_bytes, human_duration, human_rate
from restow.ui.addresses import plan_address, rehearsal_address
from restow.ui.bars import span
from restow.ui.forms import command_fields
from restow.ui.frame import Shown, at, hidden, live_parts, pager
from restow.ui.lists import paged, thinned
from restow.ui.pages.plans import asked_for, job_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.html.page import Markup
    from restow.ui.commands import CommandForm
    from restow.ui.jobs import CommandJob
    from restow.ui.plan_store import StoredPlan, StoredRehearsal
    from restow.ui.sessions import UiSession

_ABOUT = "The executor runs in virtual time, on a model of the cluster. Nothing is changed."
_LINES = 8
_ROWS = 60
_POINTS = 300
_THROTTLES = ("5MB/s", "10MB/s", "20MB/s", "50MB/s", "100MB/s", "200MB/s", "500MB/s", "1GB/s", "none")


def rehearse_form(
    stored: StoredPlan, form: CommandForm, session: UiSession, given: Mapping[str, str], wrong: str = ""
) -> str:
    """Return the form that rehearses a plan, with sliders for the throttle and the hour of the start."""
    said = paragraph(wrong, "bad") if wrong else ""
    hours = ("", *(f"{hour:02}:00" for hour in range(24)))
    sliders = "".join(
        f"<label>{label}<input type='range' min='0' max='{len(names) - 1}' value='{value}' "
        f"data-shows='rehearse-{name}' data-names='{','.join(names)}'></label>"
        for name, label, names, value in (
            ("throttle", "Throttle, by slider", _THROTTLES, _place(_THROTTLES, given, "throttle", 3)),
            ("start", "Hour of the start, by slider", hours, _place(hours, given, "start", 0)),
        )
    )
    fields = command_fields(form, given or {"throttle": "50MB/s", "special_last": "yes"})
    for name in ("throttle", "start"):
        fields = fields.replace(f"<input name='{name}'", f"<input id='rehearse-{name}' name='{name}'")
    return (
        f"<section id='rehearse'><h2>{'Rehearse it otherwise' if given else 'Rehearse'}</h2>"
        f"{paragraph(_ABOUT)}{said}"
        f"<form method='post' action='{plan_address(stored.id)}/rehearsals'>{hidden(session)}"
        f"<div class='row' data-scripts hidden>{sliders}</div>{fields}"
        "<button>Rehearse it</button></form></section>"
    )


def _place(names: Sequence[str], given: Mapping[str, str], name: str, default: int) -> int:
    """Return where a slider stands: at what was filled in, if it has that."""
    return names.index(given[name]) if given.get(name) in names else default


def rehearsals_of(stored: StoredPlan) -> str:
    """Return a plan's rehearsals as a table."""
    rows = []
    for each in stored.rehearsals():
        told = each.told()
        asked = asked_for(each.request)
        if told is None:
            rows.append(
                (link(each.id, rehearsal_address(stored.id, each.id)), asked, "–", each.wrong or "under way")
            )
            continue
        problems = (
            count(len(told["problems"]), "problem") if told["problems"] else "nothing speaks against it"
        )
        rows.append((link(each.id, rehearsal_address(stored.id, each.id)), asked, _range(told), problems))
    if not rows:
        return ""
    heads = ("rehearsal", "asked for", "takes", "found")
    return titled("Rehearsals", table(heads, rows, left=4, caption="rehearsals"))


def rehearsal_page(
    stored: StoredPlan, rehearsal: StoredRehearsal, job: CommandJob | None, number: int, again: str = ""
) -> Shown:
    """Return a rehearsal's page, or what keeps it. `again` is the form to rehearse with other options."""
    title = f"Rehearsal of {stored.title}"
    if job is not None and not job.is_over:
        body = live_parts(job_parts(job))
        return Shown(title=title, body=body, feed=f"/events?page=job&job={job.id}", incomplete=True)
    told = rehearsal.told()
    back = f"<p>{link('To the plan', plan_address(stored.id))}</p>"
    if told is None:
        wrong = rehearsal.wrong or "the server was stopped meanwhile: rehearse it again"
        return Shown(title=title, body=f"<section>{paragraph(wrong, 'bad')}{back}</section>{again}")
    throttle = escape(str(told["throttle"]))
    lead = f"Throttle {throttle}, begins {at(told['start_ms'])}. Pictures have their times in UTC."
    parts = [
        f"<p class='lead'>{lead}</p>",
        tiles(_tiles(told)),
        back,
        again,
        *map(section, _sections(told)),
        _steps(stored, rehearsal, told, number),
    ]
    return Shown(title=title, body="".join(parts))


def _s(seconds: float | None) -> float:
    return inf if seconds is None else float(seconds)


def _range(told: Mapping[str, Any]) -> str:
    seconds = told["seconds"]
    middle, low, high = (human_duration(_s(seconds[name])) for name in ("p50", "p10", "p90"))
    return f"{middle} ({low} to {high})"


def _tiles(told: Mapping[str, Any]) -> Iterator[Tile]:
    for name, words in (
        ("p50", "most likely"),
        ("p10", "one in ten is faster"),
        ("p90", "one in ten is slower"),
    ):
        yield Tile(value=human_duration(_s(told["seconds"][name])), name=words)
    yield Tile(value=human_bytes(told["bytes_to_copy"]), name="to copy")
    yield Tile(value=f"{len(told['leader_changes']):,}", name="leaders move")
    if told["isr_margin"] is not None:
        yield Tile(value=f"{told['isr_margin']:,}", name="in-sync replicas to spare, at least")
    yield Tile(
        value=f"{len(told['problems']):,}", name="problems", kind="bad" if told["problems"] else "good"
    )


def _sections(told: Mapping[str, Any]) -> Iterator[Section]:
    if told["problems"]:
        yield Section(title="Problems", parts=tuple(paragraph(str(each), "bad") for each in told["problems"]))
    notes = [*told["notes"], *known_lines(told["known"])]
    if notes:
        yield Section(title="What it knows", parts=tuple(map(paragraph, notes)))
    limiting = [(each["what"], f"{each['share']:.0%}") for each in told["limiting"]]
    yield Section(title="What limits it", parts=(table(("", "of the time"), limiting, caption="limits"),))
    if told["starts"]:
        rows = [
            (
                at(each["start_ms"]),
                each["throttle"],
                human_duration(each["seconds"]),
                human_bytes(each["impact"]),
            )
            for each in told["starts"]
        ]
        heads = ("start", "throttle", "takes", "impact on clients")
        yield Section(title="Starts", parts=(table(heads, rows, caption="starts"),))
    received = "What brokers receive for new replicas, with what producers write to them meanwhile."
    yield Section(title="Bytes copied", note=received, parts=(_progress(told),))
    yield Section(title="Moves under way", parts=(_under_way(told),))
    yield Section(title="Log dirs", note="Old and new copies counted.", parts=(_disks(told), _log_dirs(told)))
    yield Section(title="Brokers", parts=(_brokers(told),))
    for fault in told["what_if"]:
        yield Section(title=f"If {fault['faults']}", parts=tuple(_fault(fault)))


def _at(told: Mapping[str, Any], seconds: float) -> float:
    return float(told["start_ms"]) / 1000 + seconds


def _progress(told: Mapping[str, Any]) -> str:
    brokers = told["brokers"]
    times = [each[0] for each in brokers[0]["rates"]] if brokers else []
    points, total, last_s = [(_at(told, 0), 0.0)], 0.0, 0.0
    for number, at_s in enumerate(times):
        total += sum(each["rates"][number][1] for each in brokers) * (at_s - last_s)
        last_s = at_s
        points.append((_at(told, at_s), total))
    return lines(
        [Line(name="received by all brokers", points=tuple(thinned(points, _POINTS)))],
        label="bytes copied over time",
    )


def _under_way(told: Mapping[str, Any]) -> str:
    """Return how many steps are under way, over time."""
    changes = [(float(each["begun_s"]), 1) for each in told["steps"]]
    changes += [(float(each["ended_s"]), -1) for each in told["steps"] if each["ended_s"] is not None]
    points, number = [(_at(told, 0), 0.0)], 0
    for at_s, change in sorted(changes):
        number += change
        points.append((_at(told, at_s), float(number)))
    return lines(
        [Line(name="steps under way", points=tuple(thinned(points, _POINTS)))],
        unit="",
        label="steps under way, over time",
    )


def _disks(told: Mapping[str, Any]) -> str:
    fullest = sorted(told["log_dirs"], key=lambda each: each["before_bytes"] - each["peak_bytes"])[:_LINES]
    drawn = [
        Line(
            name=f"broker {each['broker']} {each['path']}",
            points=tuple(thinned([(_at(told, at_s), float(used)) for at_s, used in each["used"]], _POINTS)),
        )
        for each in fullest
    ]
    return lines(drawn, label="bytes in log dirs over time")


def _log_dirs(told: Mapping[str, Any]) -> str:
    rows = [
        (
            str(each["broker"]),
            each["path"],
            human_bytes(each["before_bytes"]),
            human_bytes(each["peak_bytes"]),
            human_duration(each["peak_s"]),
            human_bytes(each["after_bytes"]),
            human_bytes(each["limit_bytes"]),
        )
        for each in told["log_dirs"]
    ]
    heads = ("broker", "log dir", "before", "at most", "after", "at the end", "allowed")
    return table(heads, rows, left=2, caption="log dirs")


def _brokers(told: Mapping[str, Any]) -> str:
    rows = [
        (
            str(each["broker"]),
            *(human_bytes(each[name]) for name in ("received_bytes", "sent_bytes", "within_bytes")),
            *(human_rate(each[name]) for name in ("most_in", "most_out")),
            *(
                "?" if each[name] is None else human_rate(each[name])
                for name in ("clients_in", "clients_out")
            ),
        )
        for each in told["brokers"]
    ]
    heads = (
        "broker",
        "receives",
        "sends",
        "between its log dirs",
        "most in",
        "most out",
        "clients in",
        "clients out",
    )
    return table(heads, rows, caption="brokers")


def _fault(fault: Mapping[str, Any]) -> Iterator[str]:
    took = "" if fault["seconds"] is None else f", after {human_duration(fault['seconds'])}"
    yield paragraph(f"{fault['ending']}{took}")
    for why in fault["pauses"]:
        yield paragraph(f"the run pauses: {why}")
    if fault["unfinished"]:
        yield paragraph(f"{count(fault['unfinished'], 'step')} would not end", "bad")
    under = count(fault["under_replicated"], "partition")
    yield paragraph(f"up to {under} under-replicated, {count(fault['leaders_moved'], 'leader')} moved")
    if fault["isr_margin"] is not None and fault["isr_margin"] < 0:
        yield paragraph("some partitions fall below min.insync.replicas: producers with acks=all fail", "bad")


def _steps(stored: StoredPlan, rehearsal: StoredRehearsal, told: Mapping[str, Any], number: int) -> str:
    """Return the timeline of the steps: each as a bar between its begin and its end."""
    whole = max((_finite(each) for each in told["steps"]), default=0.0) or 1.0
    found = paged(told["steps"], number, _ROWS)
    rows = [
        (
            each["partition"],
            ", ".join(map(str, each["before"])),
            ", ".join(map(str, each["after"])),
            _bar(float(each["begun_s"]), _finite(each), whole),
            f"{each['begun_s']:,.1f} s",
            "never" if each["ended_s"] is None else f"{each['ended_s']:,.1f} s",
        )
        for each in found.rows
    ]
    heads = ("partition", "before", "after", "from begin to end", "begins", "ends")
    turn = pager(rehearsal_address(stored.id, rehearsal.id), found.number, found.pages)
    shown = table(heads, rows, left=4, caption="steps over time")
    return titled(f"Timeline: {count(found.total, 'step')}", shown, turn)


def _finite(step: Mapping[str, Any]) -> float:
    return float(step["begun_s"] if step["ended_s"] is None else step["ended_s"])


def _bar(begun_s: float, ended_s: float, whole_s: float) -> Markup:
    return span(begun_s / whole_s, ended_s / whole_s, f"{begun_s:,.1f} s to {ended_s:,.1f} s")
