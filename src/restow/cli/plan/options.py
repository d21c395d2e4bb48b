"""The options that all `restow plan …` commands share: the cluster, exclusions, limits and output."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from restow.cli.place.options import Format
from restow.cli.plan import also as plan_also
from restow.cli.plan.files import AsFormat, Output, PlanOutput, Rollback
from restow.cli.shared.frame import INCOMPLETE, Answer
from restow.errors import InvalidInput
from restow.model import Limits
from restow.sizes import parse_size
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.model import TopicPartition
    from restow.model.load import LoadModel
    from restow.plan.request.request import PlanRequest

Given: TypeAlias = dict[str, Any]
"""The shared options, as keyword arguments of a request."""

INPUT, LIMITS = "Input", "Exclusions and bands"
WHILE = "Limits during the execution"
USUAL = Limits()

Bootstrap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,…]",
        envvar="RESTOW_BOOTSTRAP_SERVER",
        help="Brokers to connect to first; any of the cluster.",
        rich_help_panel="Connection",
    ),
]
SnapshotFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        metavar="FILE",
        help="Plan from a file of `restow snapshot` instead.",
        rich_help_panel=INPUT,
    ),
]
LoadFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="FILE",
        help="Load model of partitions. Default: balance sizes and counts.",
        rich_help_panel=INPUT,
    ),
]
Topics: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="T1,T2*", help="Change only these topics; patterns like file names.", rich_help_panel=LIMITS
    ),
]
ExcludeTopics: TypeAlias = Annotated[
    str | None, typer.Option(metavar="T1,T2*", help="Do not change these topics.", rich_help_panel=LIMITS)
]
ExcludeBrokers: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="1,2", help="Move nothing to or from these brokers.", rich_help_panel=LIMITS),
]
ExcludePartitions: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="T1-0,T1-7", help="Do not change these partitions.", rich_help_panel=LIMITS),
]
Cordon: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="1,2",
        help="Move no replicas to these brokers. Cordoned log dirs (Kafka 4.3) never get any.",
        rich_help_panel=LIMITS,
    ),
]
Partial: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--partial",
        help="Write the plan even if it is incomplete. Default: do not write it, exit with code 3.",
    ),
]
Band: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[GOAL=]SHARE|none",
        help="Allow brokers this distance from their share, like 0.05, disk=0.02 or cpu=none; repeatable.",
        rich_help_panel=LIMITS,
    ),
]
MaxBytes: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Copy at most this, like 50GB or 1.5TiB.", rich_help_panel=LIMITS),
]
MaxMoves: TypeAlias = Annotated[
    int | None, typer.Option(min=0, help="Move at most this many partitions.", rich_help_panel=LIMITS)
]
Fill: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="How full a log dir may become.", rich_help_panel=LIMITS)
]
ExtraCopies: TypeAlias = Annotated[
    int, typer.Option(help="Extra copies a partition may have.", rich_help_panel=WHILE)
]
MovesIn: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Most replicas that a broker receives at a time.",
        show_default="20, more if they are small",
        rich_help_panel=WHILE,
    ),
]
MovesOut: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Most replicas that a broker sends at a time.",
        show_default="10, more if they are small",
        rich_help_panel=WHILE,
    ),
]
Seconds: TypeAlias = Annotated[
    float, typer.Option(help="Search for at most this long.", rich_help_panel=LIMITS)
]
Seed: TypeAlias = Annotated[int, typer.Option(help="The same seed gives the same plan.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Html: TypeAlias = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write the plan as an HTML page too.")
]

_MANY = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The values of the options."""

    bootstrap: str | None
    snapshot: str | None
    load: str | None
    topics: str | None
    exclude_topics: str | None
    exclude_brokers: str | None
    exclude_partitions: str | None
    cordon: str | None
    band: list[str] | None
    max_bytes: str | None
    max_moves: int | None
    fill: float
    extra_copies: int
    moves_in: int | None
    moves_out: int | None
    seconds: float
    seed: int
    output: str | None
    form: Format
    rollback: str | None
    html: str | None
    partial: bool
    as_json: bool

    @property
    def wanted(self) -> PlanOutput:
        return PlanOutput(output=self.output, form=self.form, rollback=self.rollback, as_json=self.as_json)


def _others(
    balance: plan_also.Balance = False,
    add: plan_also.Add = None,
    drain: plan_also.Drain = None,
    demote: plan_also.Demote = None,
    replace: plan_also.Replace = None,
    any_rack: plan_also.AnyRack = False,
    replication_factor: plan_also.ReplicationFactor = None,
    fix_racks: plan_also.FixRacks = False,
    leaders: plan_also.Leaders = False,
    disks: plan_also.Disks = False,
    spread_topics: plan_also.SpreadTopics = False,
) -> None:
    """Declare the further requests that all plan commands take."""


def _shared(
    bootstrap: Bootstrap = None,
    snapshot: SnapshotFile = None,
    load: LoadFile = None,
    topics: Topics = None,
    exclude_topics: ExcludeTopics = None,
    exclude_brokers: ExcludeBrokers = None,
    exclude_partitions: ExcludePartitions = None,
    cordon: Cordon = None,
    band: Band = None,
    max_bytes: MaxBytes = None,
    max_moves: MaxMoves = None,
    fill: Fill = USUAL.fill,
    extra_copies: ExtraCopies = USUAL.extra_copies,
    moves_in: MovesIn = None,
    moves_out: MovesOut = None,
    seconds: Seconds = 60.0,
    seed: Seed = 0,
    output: Output = None,
    form: AsFormat = Format.TABLE,
    rollback: Rollback = None,
    html: Html = None,
    partial: Partial = False,
    as_json: AsJson = False,
) -> None:
    """Declare the options that all plan commands share."""


def planning(request_for: Callable[..., PlanRequest]) -> Callable[..., Answer]:
    """Turn a function that makes a request into a command.

    The function takes the shared options, as keyword arguments of a request, and then its own arguments. The
    command takes its own arguments, the further requests, and the shared options.
    """
    _, *own = signature(request_for, eval_str=True).parameters.values()
    shared = signature(_shared, eval_str=True).parameters
    others = signature(_others, eval_str=True).parameters

    def command(**values: Any) -> Answer:
        options = PlanOptions(**{name: values.pop(name) for name in shared})
        also = plan_also.Also(**{name: values.pop(name) for name in others})
        with _no_collection():
            return answer_of(options, lambda given: also.added_to(request_for(given, **values)))

    all_of_them = (*own, *others.values(), *shared.values())
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in all_of_them]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switch the garbage collector off: planning makes millions of objects and needs all of them.

    A collection would take seconds, also when the plan is shown and when the program ends.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY:
            gc.freeze()
        if was_on:
            gc.enable()


def answer_of(options: PlanOptions, request_for: Callable[[Given], PlanRequest]) -> Answer:
    """Read the cluster, plan, and write the plan. `request_for` gets the values of the shared options."""
    from restow.cli.plan.view import View
    from restow.cli.snapshot.files import snapshot_from
    from restow.plan.files.reading import read_load
    from restow.plan.pin import check_limits
    from restow.plan.planning import make_plan
    from restow.plan.request.request import RequestedLimits, settled

    options.wanted.check()
    limits = RequestedLimits(
        extra_copies=options.extra_copies,
        moves_in=options.moves_in,
        moves_out=options.moves_out,
        fill=options.fill,
    )
    check_limits(settled(limits, ()))
    load = None if options.load is None else read_load(options.load)
    request = request_for(_common(options, load))
    snapshot = snapshot_from(options.bootstrap, options.snapshot)
    made = make_plan(snapshot, load, request, limits=limits, seconds=options.seconds)
    plan, told = made.plan, made.explain()
    names_dirs = any(move.log_dirs for move in plan.moves)
    dirs = made.log_dirs() if names_dirs or options.html is not None else ()
    view = View(plan, told, dirs if names_dirs else (), refused=bool(plan.leaves) and not options.partial)
    if view.refused:
        as_json = options.wanted.prints_json
        return Answer(document=view.document, draw=view.draw, as_json=as_json, code=INCOMPLETE)
    options.wanted.save(plan)
    if options.html is not None:
        from restow.cli.plan.show_html import page_of
        from restow.plan.explain.view import view_of

        write_text(options.html, page_of(plan, view_of(plan, snapshot), told, dirs))
    return options.wanted.answer(plan, view.document, view.draw)


def shares(items: list[str] | None, flag: str, goals: tuple[str, ...]) -> dict[str, float | None]:
    """Parse `0.05` for all goals, `disk=0.02` for one, `cpu=none` to ignore one."""
    found: dict[str, float | None] = {}
    for item in items or ():
        goal, equals, value = item.rpartition("=")
        try:
            number = None if value == "none" else float(value)
        except ValueError:
            raise InvalidInput(f"{flag}: {item!r} is not a share like 0.05 or disk=0.05") from None
        found |= {goal: number} if equals else dict.fromkeys(goals, number)
    return found


def _common(options: PlanOptions, load: LoadModel | None) -> Given:
    from restow.plan.planning import goals_of

    return {
        "bands": shares(options.band, "--band", goals_of(load)),
        "only_topics": _names(options.topics),
        "except_topics": _names(options.exclude_topics),
        "except_brokers": plan_also.broker_ids(options.exclude_brokers, "--exclude-brokers"),
        "except_partitions": _partitions(options.exclude_partitions),
        "cordon": plan_also.broker_ids(options.cordon, "--cordon"),
        "most_bytes": None if options.max_bytes is None else parse_size(options.max_bytes, "--max-bytes"),
        "most_moves": options.max_moves,
        "fill": options.fill,
        "seed": options.seed,
    }


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _partitions(text: str | None) -> frozenset[TopicPartition]:
    """Parse `orders-0,orders-7`."""
    from restow.model import TopicPartition

    try:
        return frozenset(map(TopicPartition.parse, _names(text)))
    except InvalidInput as error:
        raise InvalidInput(f"--exclude-partitions: {error}") from None
