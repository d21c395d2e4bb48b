"""The options that all `restow plan …` commands share: the cluster, exclusions, limits and output."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from restow.cli.plan.also import Also, broker_ids
from restow.cli.plan.files import PlanOutput
from restow.cli.shared.connection import AsJson
from restow.cli.shared.frame import Answer, warn
from restow.cli.shared.options import section
from restow.cli.snapshot.source import INPUT, SnapshotSource
from restow.errors import InvalidInput
from restow.model import Limits
from restow.sizes import parse_size
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.model import TopicPartition
    from restow.model.load import LoadModel
    from restow.plan.explain.why import WhyBroker, WhyPartition
    from restow.plan.planning import MadePlan
    from restow.plan.request.request import PlanRequest, RequestedLimits

_EXCLUSIONS = "Exclusions and bands"
_MANY = 100_000
USUAL = Limits()

Fill: TypeAlias = Annotated[
    float, typer.Option(metavar="SHARE", help="How full a log dir may become.", rich_help_panel=_EXCLUSIONS)
]
Partial: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--partial",
        help="Write the plan even if it is incomplete. Default: do not write it, exit with code 3.",
    ),
]


@section(_EXCLUSIONS)
class Exclusions:
    """What a plan may change, how much, and how long the search may take."""

    topics: Annotated[
        str | None, typer.Option(metavar="T1,T2*", help="Change only these topics; patterns like file names.")
    ] = None
    exclude_topics: Annotated[
        str | None, typer.Option(metavar="T1,T2*", help="Do not change these topics.")
    ] = None
    exclude_brokers: Annotated[
        str | None, typer.Option(metavar="1,2", help="Move nothing to or from these brokers.")
    ] = None
    exclude_partitions: Annotated[
        str | None, typer.Option(metavar="T1-0,T1-7", help="Do not change these partitions.")
    ] = None
    cordon: Annotated[
        str | None,
        typer.Option(
            metavar="1,2",
            help="Move no replicas to these brokers. Cordoned log dirs (Kafka 4.3) never get any.",
        ),
    ] = None
    band: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GOAL=]SHARE|none",
            help="Allow brokers this distance from their share, like 0.05, disk=0.02 or cpu=none; "
            "repeatable.",
        ),
    ] = None
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Copy at most this, like 50GB or 1.5TiB.")
    ] = None
    max_moves: Annotated[int | None, typer.Option(min=0, help="Move at most this many partitions.")] = None
    fill: Fill = USUAL.fill
    seconds: Annotated[float, typer.Option(help="Search for at most this long.")] = 60.0

    @property
    def only_topics(self) -> tuple[str, ...]:
        return _names(self.topics)

    def added_to(self, request: PlanRequest, load: LoadModel | None) -> PlanRequest:
        """Add the exclusions to a request."""
        from restow.plan.planning import goals_of

        return replace(
            request,
            bands=shares(self.band, "--band", goals_of(load)),
            only_topics=self.only_topics,
            except_topics=_names(self.exclude_topics),
            except_brokers=broker_ids(self.exclude_brokers, "--exclude-brokers"),
            except_partitions=_partitions(self.exclude_partitions),
            cordon=broker_ids(self.cordon, "--cordon"),
            most_bytes=None if self.max_bytes is None else parse_size(self.max_bytes, "--max-bytes"),
            most_moves=self.max_moves,
            fill=self.fill,
        )


@section("Limits during the execution")
class ExecutionLimits:
    """How much may move at a time while the plan is executed."""

    extra_copies: Annotated[int, typer.Option(help="Extra copies a partition may have.")] = USUAL.extra_copies
    moves_in: Annotated[
        int | None,
        typer.Option(
            help="Most replicas that a broker receives at a time.", show_default="20, more if they are small"
        ),
    ] = None
    moves_out: Annotated[
        int | None,
        typer.Option(
            help="Most replicas that a broker sends at a time.", show_default="10, more if they are small"
        ),
    ] = None

    def requested(self, fill: float) -> RequestedLimits:
        """Return the limits, checked."""
        from restow.plan.pin import check_limits
        from restow.plan.request.request import RequestedLimits, settled

        limits = RequestedLimits(
            extra_copies=self.extra_copies, moves_in=self.moves_in, moves_out=self.moves_out, fill=fill
        )
        check_limits(settled(limits, ()))
        return limits


@section()
class PlanOptions:
    """All of these options, and how a command plans with them."""

    also: Also
    source: SnapshotSource
    load: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Load model of partitions. Default: balance sizes and counts.",
            rich_help_panel=INPUT,
        ),
    ] = None
    exclusions: Exclusions
    limits: ExecutionLimits
    seed: Annotated[int, typer.Option(help="The same seed gives the same plan.")] = 0
    old: Annotated[
        str | None,
        typer.Option(
            "--start-from",
            metavar="FILE",
            help="Begin with the targets of this plan, and change as little of it as possible.",
            rich_help_panel=INPUT,
        ),
    ] = None
    output: PlanOutput
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write the plan as an HTML page too.")] = (
        None
    )
    partial: Partial = False
    as_json: AsJson = False

    def plan(self, **wish: Any) -> Answer:
        """Read the cluster, plan what the command wishes and the options ask for, and write the plan.

        The wish has the names of a `PlanRequest`'s fields.
        """
        with _no_collection():
            return self._plan(wish)

    def make(self, wish: dict[str, Any]) -> MadePlan:
        """Read the cluster, and plan what the command wishes and the options ask for."""
        from restow.cli.plan.progress import progress_line
        from restow.cli.shared.signals import told_to_stop_here
        from restow.plan import read_load, read_plan
        from restow.plan.planning import make_plan
        from restow.plan.request.request import PlanRequest

        limits = self.limits.requested(self.exclusions.fill)
        load = None if self.load is None else read_load(self.load)
        own = self.exclusions.added_to(PlanRequest(seed=self.seed, **wish), load)
        request = self.also.added_to(own)
        old = None if self.old is None else read_plan(self.old)
        snapshot = self.source.read()
        with told_to_stop_here() as told_to_stop, progress_line() as tell:
            made = make_plan(
                snapshot,
                load,
                request,
                limits=limits,
                seconds=self.exclusions.seconds,
                told_to_stop=told_to_stop.is_set,
                old=old,
                tell=tell,
            )
        if told_to_stop.is_set():
            warn("interrupted: this is the best plan found so far")
        return made

    def explain(self, what: str) -> WhyPartition | WhyBroker:
        """Explain one partition or broker of the plan that the options ask for; to balance, if for none."""
        from restow.model import TopicPartition

        is_broker = what.isascii() and what.isdigit()
        try:
            name = None if is_broker else TopicPartition.parse(what)
        except InvalidInput:
            raise InvalidInput(
                f"{what!r} is neither a partition, like orders-7, nor the id of a broker, like 3"
            ) from None
        with _no_collection():
            made = self.make({} if self.also.any else {"balance": True})
            why = made.why(self.exclusions.seconds)
            return why.of_broker(int(what)) if name is None else why.of_partition(name)

    def _plan(self, wish: dict[str, Any]) -> Answer:
        from restow.cli.plan.view import View

        self.output.check(as_json=self.as_json)
        made = self.make(wish)
        snapshot = made.snapshot
        plan, told = made.plan, made.explain()
        names_dirs = any(move.log_dirs for move in plan.moves)
        dirs = made.log_dirs() if names_dirs or self.html is not None else ()
        view = View(plan, told, dirs if names_dirs else (), refused=bool(plan.leaves) and not self.partial)
        answer = self.output.answer(
            plan, view.document, view.draw, self.source.address, as_json=self.as_json, refused=view.refused
        )
        if self.html is not None and not view.refused:
            from restow.cli.plan.show_html import page_of
            from restow.plan.explain.view import view_of

            write_text(self.html, page_of(plan, view_of(plan, snapshot), told, dirs))
        return answer


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


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _partitions(text: str | None) -> frozenset[TopicPartition]:
    """Parse `orders-0,orders-7`."""
    from restow.model import TopicPartition

    try:
        return frozenset(map(TopicPartition.parse, _names(text)))
    except InvalidInput as error:
        raise InvalidInput(f"--exclude-partitions: {error}") from None
