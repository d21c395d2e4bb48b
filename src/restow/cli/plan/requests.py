"""The commands `restow plan …` that make a plan of one request. They differ in what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from restow.cli.plan.also import broker_ids, pairs, replication_factors_of
from restow.cli.plan.options import PlanOptions, shares
from restow.cli.shared.frame import Answer
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable


class PlanCommand(NamedTuple):
    """A command as the tree of commands takes it."""

    ABOUT: str
    HELP: str
    command: Callable[..., Answer]


def _asks(**wish: bool) -> Callable[..., Answer]:
    """Return a command that needs no argument to say what it asks for."""

    def command(options: PlanOptions) -> Answer:
        return options.plan(**wish)

    return command


def _add_brokers(
    brokers: Annotated[str, typer.Argument(metavar="7,8", help="The new brokers.")], options: PlanOptions
) -> Answer:
    return options.plan(add=broker_ids(brokers, "BROKERS"))


def _drain(
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers to empty.")], options: PlanOptions
) -> Answer:
    return options.plan(drain=broker_ids(brokers, "BROKERS"))


def _demote(
    brokers: Annotated[str, typer.Argument(metavar="3,4", help="The brokers to take leadership from.")],
    options: PlanOptions,
) -> Answer:
    return options.plan(demote=broker_ids(brokers, "BROKERS"))


def _replace(
    brokers: Annotated[
        str, typer.Argument(metavar="OLD:NEW,…", help="The old broker and the new one, like 3:9.")
    ],
    options: PlanOptions,
) -> Answer:
    return options.plan(replace=pairs(brokers, "BROKERS"))


def _change_rf(
    replicas: Annotated[
        int,
        typer.Argument(
            min=1, metavar="REPLICATION_FACTOR", help="The new number of replicas of each partition."
        ),
    ],
    options: PlanOptions,
) -> Answer:
    factors = replication_factors_of(options.exclusions.only_topics, replicas)
    return options.plan(replication_factors=factors)


def _relieve(
    limits: Annotated[list[str], typer.Argument(metavar="GOAL=LIMIT…", help="Goals, each with its limit.")],
    options: PlanOptions,
) -> Answer:
    return options.plan(relieve=limits_of(limits))


def limits_of(items: list[str]) -> dict[str, float]:
    """Parse goals with limits in multiples of a broker's share, like `disk=1.2`."""
    found = {}
    for goal, limit in shares(items, "LIMIT", ()).items():
        if limit is None or limit <= 1:
            raise InvalidInput(f"{goal}: a limit is a number above 1, like disk=1.2")
        found[goal] = limit
    if not found:
        raise InvalidInput("say which goals and how much, like disk=1.2")
    return found


_DRAIN = PlanCommand(
    "Move everything off brokers, to remove them.",
    """Move all replicas off some brokers, which may be down. Nothing else moves.

The plan names partitions that cannot move with the reason (the only replica is on a broker that is down, a
reassignment is running, it is excluded), and is then incomplete. --topics drains only these topics.

\b
Examples:
  $ restow plan drain 3 -b localhost:9092 -o plan.json
  $ restow plan drain 3 --partial -b localhost:9092 -o plan.json
""",
    _drain,
)
COMMANDS = {
    "balance": PlanCommand(
        "Bring every goal into its band.",
        """Even out disks, traffic, replicas and leaders with the fewest bytes copied.

Every goal has a band around each broker's share; what is in its bands does not move. The plan names brokers
that stay out of band, and partitions with two replicas in one rack (--fix-racks), with the reason.

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan balance --snapshot now.json --load load.json --band 0.05 --drain 3
""",
        _asks(balance=True),
    ),
    "add-brokers": PlanCommand(
        "Give new brokers their share.",
        """Give new brokers their share of every goal. Replicas move only to them, never between other
brokers; leaders may change on any broker.

\b
Examples:
  $ restow plan add-brokers 7,8 -b localhost:9092 -o plan.json
""",
        _add_brokers,
    ),
    "drain": _DRAIN,
    "demote": PlanCommand(
        "Take leadership from brokers; no data moves.",
        """Take leadership from brokers: for each partition that they lead, another in-sync replica comes
first and leads. Replicas stay where they are, and nothing is copied.

A plan that finds no other leader for a partition names it with the reason, and is incomplete.

\b
Examples:
  $ restow plan demote 3 -b localhost:9092 -o plan.json
""",
        _demote,
    ),
    "remove-brokers": _DRAIN,
    "replace": PlanCommand(
        "Put one broker in another's place.",
        """Give one broker exactly the replicas of another, in the same positions, so that it leads what the
other led. The old broker may be down; the new one need not be empty.

The command refuses a new broker that already has a replica of the same partition, has no room, or is in a
rack where two replicas of a partition would meet; --any-rack allows the last. The plan names partitions that
cannot move now, and is then incomplete.

\b
Examples:
  $ restow plan replace 3:9 -b localhost:9092 -o plan.json
  $ restow plan replace 3:9 --any-rack -b localhost:9092 -o plan.json
""",
        _replace,
    ),
    "change-rf": PlanCommand(
        "Change replication factors.",
        """Give topics more or fewer replicas. --topics has to say which; '*' means all but Kafka's internal
topics, which change only if they are named ('__consumer_offsets' or '__*').

New replicas go to the emptiest brokers, across racks. The plan drops replicas on brokers that leave or are
down first, then second ones in a rack, then those on the fullest broker; the leader stays. The command
refuses a replication factor below min.insync.replicas.

\b
Examples:
  $ restow plan change-rf 3 --topics orders,payments -b localhost:9092 -o plan.json
  $ restow plan change-rf 3 --topics '*' -b localhost:9092 -o plan.json
""",
        _change_rf,
    ),
    "fix-racks": PlanCommand(
        "Spread replicas over racks.",
        """Move a replica out of a rack that has another one of the partition, while some rack has none.
Nothing else moves. The plan names partitions that cannot move now, and is then incomplete.

\b
Examples:
  $ restow plan fix-racks -b localhost:9092 -o plan.json
""",
        _asks(fix_racks=True),
    ),
    "leaders": PlanCommand(
        "Even out leaders; no data moves.",
        """Change which replica leads, so that leaders, their traffic and their work are even. Nothing is
copied. Partitions with a lagging replica keep their leaders, and the plan names them.

\b
Examples:
  $ restow plan leaders -b localhost:9092 -o plan.json
""",
        _asks(leaders=True),
    ),
    "disks": PlanCommand(
        "Even out log dirs within brokers.",
        """Move replicas between the log dirs of the same broker, until each has its share by the size of its
file system. Nothing crosses the network. Cordoned log dirs get nothing. The plan names uneven log dirs.

\b
Examples:
  $ restow plan disks -b localhost:9092 -o plan.json
""",
        _asks(disks=True),
    ),
    "relieve": PlanCommand(
        "Move load off brokers above a limit.",
        """Move just enough load off brokers above a limit, given in multiples of their share. The plan
names brokers that stay above it, with the reason.

\b
Examples:
  $ restow plan relieve disk=1.2 -b localhost:9092 -o plan.json
""",
        _relieve,
    ),
}
