"""Further requests for the same plan: every `restow plan …` command takes them beside its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from restow.plan.request.request import PlanRequest

ALSO = "Other requests for the same plan"

Balance: TypeAlias = Annotated[
    bool, typer.Option("--balance", help="Bring every goal into its band.", rich_help_panel=ALSO)
]
Leaders: TypeAlias = Annotated[
    bool, typer.Option("--leaders", help="Even out leaders.", rich_help_panel=ALSO)
]
Disks: TypeAlias = Annotated[
    bool, typer.Option("--disks", help="Even out log dirs within brokers.", rich_help_panel=ALSO)
]
FixRacks: TypeAlias = Annotated[
    bool, typer.Option("--fix-racks", help="Spread replicas over racks.", rich_help_panel=ALSO)
]
SpreadTopics: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--spread-topics", help="Spread each topic over the brokers, with --balance.", rich_help_panel=ALSO
    ),
]
Add: TypeAlias = Annotated[
    str | None, typer.Option(metavar="7,8", help="Give new brokers their share.", rich_help_panel=ALSO)
]
Drain: TypeAlias = Annotated[
    str | None, typer.Option(metavar="1,2", help="Empty these brokers.", rich_help_panel=ALSO)
]
Demote: TypeAlias = Annotated[
    str | None, typer.Option(metavar="1,2", help="Take leadership from these brokers.", rich_help_panel=ALSO)
]
AnyRack: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--any-rack",
        help="Let a replacement put two replicas of a partition into one rack.",
        rich_help_panel=ALSO,
    ),
]
Replace: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="OLD:NEW,…",
        help="Replace brokers by others, with the same replicas.",
        rich_help_panel=ALSO,
    ),
]
ReplicationFactor: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--replication-factor",
        "--rf",
        min=1,
        help="Set the replication factor of --topics, which is required; '*' for all but internal topics.",
        rich_help_panel=ALSO,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Also:
    """The values of these options."""

    balance: bool
    leaders: bool
    disks: bool
    fix_racks: bool
    spread_topics: bool
    add: str | None
    drain: str | None
    demote: str | None
    replace: str | None
    any_rack: bool
    replication_factor: int | None

    def added_to(self, request: PlanRequest) -> PlanRequest:
        """Merge these options into the command's own request."""
        replication_factors = dict(request.replication_factors)
        if self.replication_factor is not None:
            if replication_factors:
                raise InvalidInput("the replication factor is given twice: leave --replication-factor out")
            replication_factors = replication_factors_of(request.only_topics, self.replication_factor)
        both = request.replace.keys() & _pairs(self.replace).keys()
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
            replace={**request.replace, **_pairs(self.replace)},
            replication_factors=replication_factors,
        )


def replication_factors_of(topics: tuple[str, ...], replication_factor: int) -> dict[str, int]:
    """Return the replication factor for the topics in --topics."""
    if not topics:
        raise InvalidInput(
            f"say which topics are to have {replication_factor} replicas, like --topics orders,payments; "
            "--topics '*' means all but Kafka's internal ones"
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


def _pairs(text: str | None) -> dict[int, int]:
    return {} if text is None else pairs(text, "--replace")
