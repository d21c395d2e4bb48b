"""Further requests for the same plan: every `restow plan …` command takes them beside its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from restow.cli.shared.options import section
from restow.errors import InvalidInput
from restow.sizes import count

if TYPE_CHECKING:
    from restow.plan.request.request import PlanRequest


@section("Other requests for the same plan")
class Also:
    """The options for further requests."""

    balance: Annotated[bool, typer.Option("--balance", help="Bring every goal into its band.")] = False
    add: Annotated[str | None, typer.Option(metavar="7,8", help="Give new brokers their share.")] = None
    drain: Annotated[str | None, typer.Option(metavar="1,2", help="Empty these brokers.")] = None
    demote: Annotated[str | None, typer.Option(metavar="1,2", help="Take leadership from these brokers.")] = (
        None
    )
    replace: Annotated[
        str | None,
        typer.Option(metavar="OLD:NEW,…", help="Replace brokers by others, with the same replicas."),
    ] = None
    any_rack: Annotated[
        bool,
        typer.Option("--any-rack", help="Let a replacement put two replicas of a partition into one rack."),
    ] = False
    replication_factor: Annotated[
        int | None,
        typer.Option(
            "--replication-factor",
            "--rf",
            min=1,
            help="Set the replication factor of --topics, which is required; "
            "'*' for all but internal topics.",
        ),
    ] = None
    fix_racks: Annotated[bool, typer.Option("--fix-racks", help="Spread replicas over racks.")] = False
    leaders: Annotated[bool, typer.Option("--leaders", help="Even out leaders.")] = False
    disks: Annotated[bool, typer.Option("--disks", help="Even out log dirs within brokers.")] = False
    spread_topics: Annotated[
        bool, typer.Option("--spread-topics", help="Spread each topic over the brokers, with --balance.")
    ] = False

    @property
    def any(self) -> bool:
        """Whether any of these was asked for."""
        named = self.add, self.drain, self.demote, self.replace, self.replication_factor
        return any(
            (self.balance, self.fix_racks, self.leaders, self.disks, *(each is not None for each in named))
        )

    def added_to(self, request: PlanRequest) -> PlanRequest:
        """Merge these options into the command's own request."""
        replication_factors = dict(request.replication_factors)
        if self.replication_factor is not None:
            if replication_factors:
                raise InvalidInput("the replication factor is given twice: leave --replication-factor out")
            replication_factors = replication_factors_of(request.only_topics, self.replication_factor)
        replaced = {} if self.replace is None else pairs(self.replace, "--replace")
        both = request.replace.keys() & replaced.keys()
        if both:
            raise InvalidInput(f"--replace: broker {min(both)} is replaced already")
        return replace(
            request,
            balance=request.balance or self.balance,
            leaders=request.leaders or self.leaders,
            disks=request.disks or self.disks,
            fix_racks=request.fix_racks or self.fix_racks,
            spread_topics=request.spread_topics or self.spread_topics,
            add=request.add | broker_ids(self.add, "--add"),
            drain=request.drain | broker_ids(self.drain, "--drain"),
            demote=request.demote | broker_ids(self.demote, "--demote"),
            any_rack=self.any_rack,
            replace={**request.replace, **replaced},
            replication_factors=replication_factors,
        )


def replication_factors_of(topics: tuple[str, ...], replication_factor: int) -> dict[str, int]:
    """Return the replication factor for the topics in --topics."""
    if not topics:
        raise InvalidInput(
            f"say which topics are to have {count(replication_factor, 'replica')}, like --topics "
            "orders,payments; --topics '*' means all but Kafka's internal ones"
        )
    return dict.fromkeys(topics, replication_factor)


def broker_ids(text: str | None, flag: str) -> frozenset[int]:
    """Parse `1,2,3`."""
    if text is None:
        return frozenset()
    items = [item.strip() for item in text.split(",")]
    if not all(item.isascii() and item.isdigit() for item in items):
        raise InvalidInput(f"{flag}: {text!r} is not a list of broker ids, like 1,2,3")
    return frozenset(map(int, items))


def pairs(text: str, flag: str) -> dict[int, int]:
    """Parse `3:9,4:10`."""
    found = {}
    for item in text.split(","):
        old, _, new = (part.strip() for part in item.partition(":"))
        if not (old.isascii() and old.isdigit() and new.isascii() and new.isdigit()):
            raise InvalidInput(f"{flag}: {item!r} is not OLD:NEW, like 3:9")
        found[int(old)] = int(new)
    return found
