"""The options of `restow place`, in the groups in which its help shows them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

_NEW, _RACKS, _EXISTING, _OUTPUT = "A new topic", "Racks", "A topic that exists", "Output"


class RackModeFlag(StrEnum):
    """The rack modes of `restow.placement`, repeated here so that `--help` need not import that."""

    ENFORCED = "enforced"
    SAFE = "safe"
    DISABLED = "disabled"


class Format(StrEnum):
    """The formats of the output."""

    TABLE = "table"
    JSON = "json"
    KAFKA = "kafka"


File: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="FILE", help="The topic as JSON or YAML; - reads standard input.")
]
Brokers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--brokers",
        "--broker-list",
        metavar="IDS",
        help="Where replicas may go, in this order: 0-5, or 0,1,2, with racks 0:a,1:b or 0-2:a,3-5:b.",
        rich_help_panel=_NEW,
    ),
]
Partitions: TypeAlias = Annotated[
    int | None, typer.Option("--partitions", "-p", metavar="N", help="How many.", rich_help_panel=_NEW)
]
ReplicationFactor: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--replication-factor", "-r", metavar="N", help="Replicas per partition.", rich_help_panel=_NEW
    ),
]
StartIndex: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Position of partition 0's leader in the broker list, and first shift. Default: random.",
        rich_help_panel=_NEW,
    ),
]
StartPartition: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Id of the first partition. Default: 0.", rich_help_panel=_NEW),
]
Seed: TypeAlias = Annotated[
    int | None, typer.Option(metavar="N", help="Seed of the random start.", rich_help_panel=_NEW)
]
Racks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…",
        help="Racks, given to the brokers in turn: a,b,c, or one for each.",
        rich_help_panel=_RACKS,
    ),
]
Mode: TypeAlias = Annotated[
    RackModeFlag | None,
    typer.Option(
        metavar="MODE",
        help="enforced (default): all brokers have a rack, or none. "
        "safe: racks count if all have one. disabled: racks are ignored.",
        rich_help_panel=_RACKS,
    ),
]
DisableRackAware: TypeAlias = Annotated[
    bool,
    typer.Option("--disable-rack-aware", help="Short for --rack-mode disabled.", rich_help_panel=_RACKS),
]
Current: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The topic's replicas now, as Kafka's reassignment JSON. Without --to, only judge them.",
        rich_help_panel=_EXISTING,
    ),
]
To: TypeAlias = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of partitions after the expansion.", rich_help_panel=_EXISTING),
]
ByHand: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--by-hand",
        "--replica-assignment",
        metavar="0:1:2,1:2:0",
        help="Judge this assignment: comma between partitions, colon between replicas, leader first.",
        rich_help_panel=_EXISTING,
    ),
]
TopicName: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The topic's name; --format kafka needs it.", rich_help_panel=_OUTPUT),
]
Output: TypeAlias = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="table|json|kafka",
        help="kafka: for kafka-reassign-partitions.",
        show_default=False,
        rich_help_panel=_OUTPUT,
    ),
]
AsJson: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Short for --format json.", rich_help_panel=_OUTPUT)
]
Rows: TypeAlias = Annotated[
    int,
    typer.Option(min=0, metavar="N", help="Most rows to draw; 0 draws all.", rich_help_panel=_OUTPUT),
]
