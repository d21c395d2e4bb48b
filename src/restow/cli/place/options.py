"""The options of `restow place`, in the groups in which its help shows them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from restow.cli.shared.drawing import DEFAULT_ROWS
from restow.cli.shared.options import section
from restow.errors import InvalidInput


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


@section("A new topic")
class NewTopicOptions:
    """The size of a topic that is not there yet, and where its replicas may go."""

    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers",
            "--broker-list",
            metavar="IDS",
            help="Where replicas may go, in this order: 0-5, or 0,1,2, with racks 0:a,1:b or 0-2:a,3-5:b.",
        ),
    ] = None
    partitions: Annotated[int | None, typer.Option("--partitions", "-p", metavar="N", help="How many.")] = (
        None
    )
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", "-r", metavar="N", help="Replicas per partition.")
    ] = None
    start_index: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Position of partition 0's leader in the broker list, and first shift. Default: random.",
        ),
    ] = None
    start_partition: Annotated[
        int | None, typer.Option(metavar="N", help="Id of the first partition. Default: 0.")
    ] = None
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the random start.")] = None


@section("Racks")
class RackOptions:
    """The brokers' racks, and whether they count."""

    racks: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Racks, given to the brokers in turn: a,b,c, or one for each."),
    ] = None
    rack_mode: Annotated[
        RackModeFlag | None,
        typer.Option(
            metavar="MODE",
            help="enforced (default): all brokers have a rack, or none. "
            "safe: racks count if all have one. disabled: racks are ignored.",
        ),
    ] = None
    disable_rack_aware: Annotated[
        bool, typer.Option("--disable-rack-aware", help="Short for --rack-mode disabled.")
    ] = False

    @property
    def mode(self) -> RackModeFlag | None:
        """Return the rack mode that the two flags name."""
        if not self.disable_rack_aware:
            return self.rack_mode
        if self.rack_mode not in (None, RackModeFlag.DISABLED):
            raise InvalidInput(
                f"--disable-rack-aware and --rack-mode {self.rack_mode} disagree: use one of the two"
            )
        return RackModeFlag.DISABLED


@section("A topic that exists")
class ExistingTopicOptions:
    """The replicas of a topic that is there, and how many partitions it is to have."""

    current: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The topic's replicas now, as Kafka's reassignment JSON. Without --to, only judge them.",
        ),
    ] = None
    to: Annotated[int | None, typer.Option(metavar="N", help="Number of partitions after the expansion.")] = (
        None
    )
    by_hand: Annotated[
        str | None,
        typer.Option(
            "--by-hand",
            "--replica-assignment",
            metavar="0:1:2,1:2:0",
            help="Judge this assignment: comma between partitions, colon between replicas, leader first.",
        ),
    ] = None


@section("Output")
class PlacementOutput:
    """What is printed."""

    topic: Annotated[
        str | None, typer.Option(metavar="NAME", help="The topic's name; --format kafka needs it.")
    ] = None
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="table|json|kafka",
            help="kafka: for kafka-reassign-partitions.",
            show_default=False,
        ),
    ] = Format.TABLE
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False
    rows: Annotated[int, typer.Option(min=0, metavar="N", help="Most rows to draw; 0 draws all.")] = (
        DEFAULT_ROWS
    )
