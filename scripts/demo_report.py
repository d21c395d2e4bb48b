"""The story as a page: what the cluster was like, what was planned, what happened, what was verified."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from restow.html.page import ReportPage, Section, Tile, page, paragraph, subtitle, table
from restow.html.plots import Bar, Line, Moment, amount, bars, changes, lines
from restow.model.load_parquet import read as read_load
from restow.plan import read_plan
from restow.plan.explain.explain import explain
from restow.plan.request.request import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from demo_run import Run
    from demo_stage import Read

    from restow.model import BrokerId, Plan, Snapshot, Verdict
    from restow.model.load import LoadModel
    from restow.plan.explain.explain import Explanation
    from restow.rehearse import Rehearsal

_BAND = 0.09
_MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The facts of the story."""

    before: Snapshot
    rehearsal: Rehearsal
    run: Run
    read: Read
    verdict: Verdict
    acks: Sequence[tuple[float, int]]
    """When so many records had been acknowledged."""
    moments: Sequence[tuple[float, str, bool]]


def write_report(story: Told, folder: Path, target: Path) -> None:
    """Write the report as one file that needs no other."""
    plan = read_plan(str(folder / "plan.json"))
    (path,) = (folder / "loads").glob("*.parquet")
    load = read_load(path)
    told = explain(story.before, load, plan, PlanRequest(balance=True))
    moments = [Moment(at=at, name=name, bad=bad) for at, name, bad in story.moments]
    report = ReportPage(
        title="A lopsided cluster, put right while it works",
        lead=f"Five brokers, then seven; three topics under load. {_today()}",
        tiles=_tiles(story, plan),
        sections=(
            _skew(story.before, load),
            _plan(plan, told),
            _run(story, moments),
            _writes(story, moments),
            _verdict(story),
        ),
        footer="Made by `make demo`: an embedded cluster and Spark in local mode, with nothing installed.",
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(report), encoding="utf-8")


def _today() -> str:
    return datetime.now(UTC).strftime("%d %B %Y, %H:%M UTC")


def _tiles(story: Told, plan: Plan) -> tuple[Tile, ...]:
    least = plan.bytes_to_copy / plan.bound_bytes if plan.bound_bytes else 1.0
    return (
        Tile(value=f"{story.read.acked:,}", name="records acknowledged"),
        Tile(value=f"{story.read.lost:,}", name="of them lost", kind="bad" if story.read.lost else "good"),
        Tile(value=amount(plan.bytes_to_copy), name=f"copied, {least:.2f} × the least possible"),
        Tile(value=f"{len(plan.moves)}", name="partitions moved"),
        Tile(
            value=f"{story.run.seconds:.0f} s",
            name=f"for the run, with a broker killed; predicted {story.rehearsal.what_if[0].seconds:.0f} s",
        ),
        Tile(
            value="verified" if story.verdict.holds else "not verified",
            name=f"{len(story.verdict.checks)} checks",
            kind="good" if story.verdict.holds else "bad",
        ),
    )


def _skew(before: Snapshot, load: LoadModel) -> Section:
    """Return the section about overloaded brokers and the partitions that cause it."""
    here = [broker.id for broker in before.brokers if any(_replicas(before, broker.id))]
    size, coming = _sizes(before), _carried(before, load, "bytes_in")
    rates = dict(zip(load.partitions, load.resources["bytes_in"].leading.tolist(), strict=True))
    led = [(name, partition) for name, partition in before.all_partitions() if partition.leader is not None]
    busiest = sorted(led, key=lambda each: -rates.get(each[0], 0.0))[:_MOST]
    return Section(
        title="Before: broker 0 carries far too much",
        note="The shaded area is an even share and the band around it; bars outside it are highlighted.",
        parts=(
            subtitle("Bytes on disk"),
            bars(_shared(size, here), band=_BAND, label="bytes on disk by broker"),
            subtitle("Bytes written per second, from Spark's load model"),
            bars(_shared(coming, here), unit="B/s", band=_BAND, label="bytes in by broker"),
            subtitle("The busiest partitions"),
            table(
                ("partition", "leader", "replicas", "in", "size"),
                (
                    (
                        str(name),
                        str(partition.leader),
                        ", ".join(map(str, partition.replicas)),
                        amount(rates.get(name, 0.0), "B/s"),
                        amount(partition.size_bytes),
                    )
                    for name, partition in busiest
                ),
            ),
        ),
    )


def _replicas(snapshot: Snapshot, broker: BrokerId) -> list[bool]:
    return [broker in partition.replicas for _, partition in snapshot.all_partitions()]


def _sizes(snapshot: Snapshot) -> Counter[BrokerId]:
    held: Counter[BrokerId] = Counter()
    for _, partition in snapshot.all_partitions():
        for copy in partition.copies:
            held[copy.broker] += copy.size_bytes
    return held


def _carried(snapshot: Snapshot, load: LoadModel, resource: str) -> Counter[BrokerId]:
    """Return each broker's part of a resource, as leader and as follower."""
    given = load.resources[resource]
    row = {name: number for number, name in enumerate(load.partitions)}
    carried: Counter[BrokerId] = Counter()
    for name, partition in snapshot.all_partitions():
        if name in row:
            for broker in partition.replicas:
                pair = given.leading if broker == partition.leader else given.following
                carried[broker] += float(pair[row[name]])  # type: ignore[assignment]
    return carried


def _shared(values: Counter[BrokerId], brokers: list[BrokerId]) -> list[Bar]:
    share = sum(values[broker] for broker in brokers) / max(len(brokers), 1)
    return [Bar(name=f"broker {each}", value=values[each], share=share) for each in sorted(brokers)]


def _plan(plan: Plan, told: Explanation) -> Section:
    bound = plan.bound_bytes or 0
    mean = sum(each.after_bytes for each in told.brokers) / max(len(told.brokers), 1)
    rows = [(f"broker {each.name}", each.before_bytes, each.after_bytes) for each in told.brokers]
    parts = [
        subtitle("Bytes on disk, before (grey) and after"),
        changes(rows, share=mean, label="bytes on disk before and after"),
        subtitle("The busiest broker, in multiples of its share"),
        table(
            ("goal", "band", "before", "after", "brokers out of band"),
            (
                (
                    goal.name.replace("_", " "),
                    "–" if goal.band is None else f"±{goal.band:.0%}",
                    f"{goal.before[0]:.2f} ×",
                    f"{goal.after[0]:.2f} ×",
                    str(goal.out_of_band or "–"),
                )
                for goal in told.goals
            ),
        ),
    ]
    parts += [paragraph(f"{each.goal} of broker {each.broker}: {each.because}") for each in told.unmet[:5]]
    return Section(
        title="The plan",
        note=f"{len(plan.moves)} partitions in {len(plan.waves)} waves, {amount(plan.bytes_to_copy)} in all. "
        f"No plan that reaches these goals copies less than {amount(bound)}.",
        parts=tuple(parts),
    )


def _run(story: Told, moments: list[Moment]) -> Section:
    run, rehearsal = story.run, story.rehearsal
    (lost,) = rehearsal.what_if
    copied = Line(name="copied", points=tuple((at, float(done)) for at, done in run.done))
    during = [each for each in moments if each.at >= run.began]
    ending = run.outcome.ending.value if run.outcome else "unknown"
    drawn = [
        copied,
        _rehearsed("rehearsed: no fault", rehearsal.progress, run.began),
        _rehearsed(f"rehearsed: {lost.faults}", lost.progress, run.began),
    ]
    same = abs(lost.seconds - rehearsal.seconds.p50) < 0.05 * rehearsal.seconds.p50
    both = " Both rehearsals take the same time, because other brokers have more to copy." if same else ""
    off = f"{run.seconds / lost.seconds - 1:+.0%}" if 0 < lost.seconds < inf else "not comparable"
    times = [
        ("rehearsed, nothing happens", *(f"{each:.1f} s" for each in _range(rehearsal)), ""),
        (f"rehearsed, broker {run.victim} lost on the way", "", f"{lost.seconds:.1f} s", "", ""),
        (f"actual, broker {run.victim} lost on the way", "", f"{run.seconds:.1f} s", "", off),
    ]
    return Section(
        title="The run, and what was rehearsed",
        note=f"Throttled to {run.throttle} per broker. Broker {run.victim} was killed in the "
        "middle: the run began nothing new while partitions lacked a replica, and went on when it was back. "
        f"It ended: {ending}. The error compares the run with the rehearsal that has the same fault.{both}",
        parts=(
            lines(drawn, moments=during, label="bytes copied over time, rehearsed and actual"),
            table(("", "P10", "P50", "P90", "error"), times),
        ),
    )


def _rehearsed(name: str, progress: Sequence[tuple[float, float]], began: float) -> Line:
    return Line(name=name, points=tuple((began + at_s, copied) for at_s, copied in progress))


def _range(rehearsal: Rehearsal) -> tuple[float, float, float]:
    return rehearsal.seconds.p10, rehearsal.seconds.p50, rehearsal.seconds.p90


def _writes(story: Told, moments: list[Moment]) -> Section:
    """Return acknowledged records per second, without those before the first look."""
    pairs = list(pairwise(story.acks))
    speed = tuple(
        (at, (count - before) / (at - earlier))
        for (earlier, before), (at, count) in pairs
        if at - earlier > 0.2
    )
    return Section(
        title="Meanwhile, a producer",
        note="Records acknowledged by all in-sync replicas, per second, from the first sample to the end.",
        parts=(
            lines(
                [Line(name="acknowledged per second", points=speed)],
                unit="",
                moments=moments,
                height=160,
                label="records acknowledged per second",
            ),
        ),
    )


def _verdict(story: Told) -> Section:
    rows = [(check.name, check.outcome.value, check.evidence) for check in story.verdict.checks]
    rows.append(
        (
            "nothing lost",
            "holds" if story.read.lost == 0 else "fails",
            f"{story.read.found:,} of {story.read.acked:,} acknowledged records were read back",
        )
    )
    return Section(title="Verified", parts=(table(("check", "outcome", "what was seen"), rows, left=3),))
