"""The commands `restow plan …` that make a plan of one request. They differ in what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from restow.cli.plan.also import broker_ids, pairs, replication_factors_of
from restow.cli.plan.options import Given, planning, shares
from restow.errors import InvalidInput
from restow.plan.request.request import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cli.shared.frame import Answer


class PlanCommand(NamedTuple):
    """A command as the tree of commands takes it."""

    ABOUT: str
    HELP: str
    command: Callable[..., Answer]


def _balance(given: Given) -> PlanRequest:
    return PlanRequest(balance=True, **given)


def _add_brokers(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="7,8", help="The brokers that are new.")],
) -> PlanRequest:
    return PlanRequest(add=broker_ids(brokers, "BROKERS"), **given)


def _drain(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers to empty.")],
) -> PlanRequest:
    return PlanRequest(drain=broker_ids(brokers, "BROKERS"), **given)


def _demote(
    given: Given,
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers that are to lead nothing.")],
) -> PlanRequest:
    return PlanRequest(demote=broker_ids(brokers, "BROKERS"), **given)


def _replace(
    given: Given,
    brokers: Annotated[
        str, typer.Argument(metavar="OLD:NEW,…", help="Which broker, and which in its place.")
    ],
) -> PlanRequest:
    return PlanRequest(replace=pairs(brokers, "BROKERS"), **given)


def _change_rf(
    given: Given,
    replicas: Annotated[
        int,
        typer.Argument(
            min=1, metavar="REPLICATION_FACTOR", help="How many replicas each partition is to have."
        ),
    ],
) -> PlanRequest:
    return PlanRequest(replication_factors=replication_factors_of(given["only_topics"], replicas), **given)


def _fix_racks(given: Given) -> PlanRequest:
    return PlanRequest(fix_racks=True, **given)


def _leaders(given: Given) -> PlanRequest:
    return PlanRequest(leaders=True, **given)


def _disks(given: Given) -> PlanRequest:
    return PlanRequest(disks=True, **given)


def _relieve(
    given: Given,
    limits: Annotated[list[str], typer.Argument(metavar="GOAL=LIMIT…", help="Goals, each with its limit.")],
) -> PlanRequest:
    return PlanRequest(relieve=limits_of(limits), **given)


def limits_of(items: list[str]) -> dict[str, float]:
    """`disk=1.2`: goals, each with the most that a broker may have of it in multiples of its share."""
    found = {}
    for goal, limit in shares(items, "LIMIT", ()).items():
        if limit is None or limit <= 1:
            raise InvalidInput(f"{goal}: a limit is a number above 1, like disk=1.2")
        found[goal] = limit
    if not found:
        raise InvalidInput("say which goals and how much, like disk=1.2")
    return found


_DRAIN = PlanCommand(
    "Empty brokers, so that they can be taken away.",
    """Move everything off some brokers, which may be down. Nothing else moves.

What cannot be moved is named with the reason (its only replica is on a broker that is down, it is being
moved, it is excluded), and the plan is incomplete. With --topics only these topics are moved off.

\b
Examples:
  $ restow plan drain 3 -b localhost:9092 -o plan.json
  $ restow plan drain 3 --partial -b localhost:9092 -o plan.json
""",
    planning(_drain),
)
COMMANDS = {
    "balance": PlanCommand(
        "Bring every goal into its band.",
        """Even out disks, traffic, replicas and leaders with the fewest bytes copied.

Every goal has a band around each broker's share; what is in its bands is not moved. Brokers that stay out of
band are named with the reason, and so are partitions that stay with two replicas in one rack (--fix-racks).

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan balance --snapshot now.json --load load.json --band 0.05 --drain 3
""",
        planning(_balance),
    ),
    "add-brokers": PlanCommand(
        "Give new brokers their share.",
        """Give brokers that have joined their share of every goal. Replicas go to them alone, none moves
between the others; who leads may change anywhere.

\b
Examples:
  $ restow plan add-brokers 7,8 -b localhost:9092 -o plan.json
""",
        planning(_add_brokers),
    ),
    "drain": _DRAIN,
    "demote": PlanCommand(
        "Let brokers lead nothing; no data moves.",
        """Take leadership from some brokers: of each partition that they lead, another replica that is in
sync comes first and leads. Replicas stay where they are, and nothing is copied.

Partitions that nobody else could lead are named with the reason, and the plan is incomplete.

\b
Examples:
  $ restow plan demote 3 -b localhost:9092 -o plan.json
""",
        planning(_demote),
    ),
    "remove-brokers": _DRAIN,
    "replace": PlanCommand(
        "Put one broker in another's place.",
        """Let one broker have exactly what another has: the same replicas in the same places, so that it
leads what the other led. The other may be down, the new one need not be empty.

It is refused if the new broker has a replica of the same partition already, has no room, or stands in a rack
where two replicas of a partition would come together; --any-rack allows the last. Partitions that cannot be
moved now are named, and the plan is incomplete.

\b
Examples:
  $ restow plan replace 3:9 -b localhost:9092 -o plan.json
  $ restow plan replace 3:9 --any-rack -b localhost:9092 -o plan.json
""",
        planning(_replace),
    ),
    "change-rf": PlanCommand(
        "Change replication factors.",
        """Give topics more or fewer replicas. --topics has to say which; '*' means all but Kafka's internal
topics, which change only if they are named ('__consumer_offsets' or '__*').

New replicas go where the least is, across racks. Those dropped are on brokers that leave or are down, then
second in their rack, then on the fullest broker; racks that have a replica keep one while there are enough,
and the leader stays. A replication factor below min.insync.replicas is refused.

\b
Examples:
  $ restow plan change-rf 3 --topics orders,payments -b localhost:9092 -o plan.json
  $ restow plan change-rf 3 --topics '*' -b localhost:9092 -o plan.json
""",
        planning(_change_rf),
    ),
    "fix-racks": PlanCommand(
        "Spread replicas over racks.",
        """Move replicas whose rack has another of the same partition, while some rack has none.
Nothing else moves. Partitions that cannot be moved now are named, and the plan is incomplete.

\b
Examples:
  $ restow plan fix-racks -b localhost:9092 -o plan.json
""",
        planning(_fix_racks),
    ),
    "leaders": PlanCommand(
        "Even out leaders; no data moves.",
        """Change which replica leads, so that leaders, their traffic and their work are even.
Nothing is copied. Partitions with a replica that lags behind keep their leaders, and are named.

\b
Examples:
  $ restow plan leaders -b localhost:9092 -o plan.json
""",
        planning(_leaders),
    ),
    "disks": PlanCommand(
        "Even out log dirs within brokers.",
        """Move replicas between the log dirs of the same broker, until each has its share by the size of its
file system. Nothing goes over the network. Cordoned log dirs only give. Log dirs that stay uneven are named.

\b
Examples:
  $ restow plan disks -b localhost:9092 -o plan.json
""",
        planning(_disks),
    ),
    "relieve": PlanCommand(
        "Take from brokers that are above a limit.",
        """Take just enough from brokers that have more than a limit, in multiples of their share. Brokers
that stay above it are named with the reason.

\b
Examples:
  $ restow plan relieve disk=1.2 -b localhost:9092 -o plan.json
""",
        planning(_relieve),
    ),
}
