"""The tree of commands.

    restow
    ├── place                 place a topic's replicas on brokers
    ├── snapshot              write the state of a cluster to a file
    │   └── diff              compare two snapshots
    ├── show                  show the moves and costs of a plan
    ├── verify                check that a plan is done and nothing is left over
    ├── reassign              Apache's kafka-reassign-partitions, with its flags
    ├── plan
    │   ├── balance           bring every goal into its band, with the fewest bytes copied
    │   ├── add-brokers, drain, demote, replace, change-rf, fix-racks, leaders, disks, relieve
    │   ├── from-json         turn Kafka's reassignment JSON into a pinned, ordered plan
    │   ├── rebase            keep the targets, start from the cluster's present state
    │   ├── sign              approve a plan with a key
    │   ├── compare           show two plans side by side
    │   └── explain           say why a partition moves, or why a broker stays out of band
    ├── broker                run one broker as a process of its own
    ├── broker-check          check whether a broker can be removed
    ├── rehearse              say what a plan will do, and how long it takes
    ├── execute               carry out a plan
    ├── watch, control        show running reassignments; change a run while it runs
    ├── resume, undo, cancel  continue a run, move it back, cancel its running reassignments
    ├── ui                    show the cluster and its runs in the browser
    ├── doctor                find leftover throttles, orphaned reassignments, lagging replicas
    ├── simulate              run clusters in virtual time, with faults, and check their promises
    ├── acls                  list the ACLs that a command needs
    ├── collect               sample a cluster periodically into a lake or a topic
    ├── pipeline
    │   ├── run               compute rates, load model, skew and forecast from samples
    │   ├── skew, forecast    show which brokers carry too much; when they reach limits
    │   ├── fleet             plan every cluster, the most urgent first
    │   ├── lab               try every assignor on every consumer group
    │   ├── rehearse          rehearse plans in many variants
    │   ├── stream            keep tables and load models current while samples arrive
    │   └── declare           write the tables as a Spark declarative pipeline
    ├── lake
    │   └── describe, compact, import, copy
    ├── cluster
    │   ├── up                start a cluster in this process
    │   └── status            show brokers, leaders and replicas out of sync
    ├── topics
    │   └── create, list, describe, create-partitions, delete
    └── groups
        ├── list, describe    list groups of both protocols; show their members and assignments
        ├── lag               show how far groups are behind, in messages and in time
        ├── assign            assign a group's partitions to its members
        ├── simulate          play joins, leaves and growing topics through several assignors
        └── assignors         list the assignors

This module imports only the descriptions of commands. A command imports its work when it runs, so that
`--help` stays fast.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow import __version__
from restow.cli import simulate
from restow.cli.cluster import acls, broker, status, up
from restow.cli.groups import assign, assignors, lag, list_groups
from restow.cli.groups import describe as describe_groups
from restow.cli.groups import simulate as simulate_groups
from restow.cli.pipeline import (
    collect,
    declare,
    fleet,
    forecast,
    lab,
    lake_compact,
    lake_copy,
    lake_describe,
    lake_import,
    pipeline_rehearse,
    pipeline_run,
    skew,
    stream,
)
from restow.cli.place import command as place
from restow.cli.plan import compare, explain, from_json, rebase, show, sign
from restow.cli.plan.requests import COMMANDS as PLAN_COMMANDS
from restow.cli.runs import (
    broker_check,
    cancel,
    control,
    doctor,
    execute,
    reassign,
    rehearse,
    resume,
    undo,
    verify,
    watch,
)
from restow.cli.shared.frame import (
    ASKED_WRONGLY,
    INTERRUPTED,
    NOBODY_READS,
    Command,
    CommandGroup,
    Root,
    let_go_of_stdout,
)
from restow.cli.shared.options import flattened
from restow.cli.snapshot import diff, take
from restow.cli.topics import create, create_partitions, delete, describe, list_topics
from restow.cli.ui import command as ui

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = """Move Kafka partitions: copy little, keep to limits, undo what was done.

\b
Examples:
  $ restow plan drain 3 --balance -b localhost:9092 -o plan.json
  $ restow show plan.json --moves
  $ restow rehearse plan.json --throttle 50MB/s -b localhost:9092
  $ restow execute plan.json --throttle 50MB/s -b localhost:9092
  $ restow verify plan.json -b localhost:9092
  $ restow undo --throttle 50MB/s -b localhost:9092

`restow cluster up` starts a cluster to try this on.
"""

_GROUPS_HELP = """Show the consumer groups of a cluster, and try assignors on them.

\b
Examples:
  $ restow groups list --bootstrap-server localhost:9092
  $ restow groups lag payments --bootstrap-server localhost:9092
  $ restow groups assign --assignor range --topics orders=12 --members c1,c2,c3
  $ restow groups assignors
"""

_CLUSTER_HELP = """Start a cluster in this process, or inspect any cluster.

\b
Examples:
  $ restow cluster up --brokers 5 --racks a,b,c
  $ restow cluster status --bootstrap-server localhost:9092
"""

_TOPICS_HELP = """Create, list, describe and delete topics, and add partitions to them.

\b
Examples:
  $ restow topics create orders --partitions 12 --replication-factor 3 -b localhost:9092
  $ restow topics describe orders -b localhost:9092
"""

_PLAN_HELP = """Make plans that copy as few bytes as possible. Planning changes nothing in the cluster.

\b
Examples:
  $ restow plan balance -b localhost:9092 -o plan.json
  $ restow plan drain 3 -b localhost:9092 -o plan.json
  $ restow plan compare monday.json tuesday.json
"""

_PIPELINE_HELP = """Compute load models, skew, forecasts and plans from samples, with Spark.

\b
Examples:
  $ restow pipeline run --lake samples --load loads --report report.html
  $ restow pipeline fleet --lake samples --plans plans
  $ restow pipeline lab --lake samples --master spark://host:7077
"""

_LAKE_HELP = """Describe, compact, fill and copy lakes of samples.

\b
Examples:
  $ restow lake describe --lake samples
  $ restow lake compact --lake samples
  $ restow lake copy --lake samples --to delta:s3a://bucket/lake
"""

_SECTIONS = {
    "Plan and move": ("plan", "show", "rehearse", "execute", "verify", "undo"),
    "While a run is going on, and after": (
        "watch",
        "control",
        "cancel",
        "resume",
        "doctor",
        "broker-check",
        "ui",
    ),
    "Look at a cluster, and sample it": (
        "cluster",
        "topics",
        "groups",
        "snapshot",
        "collect",
        "lake",
        "pipeline",
    ),
    "Kafka's algorithms and tools": ("place", "reassign", "acls"),
    "The embedded cluster": ("broker", "simulate"),
}

_SETTINGS: dict[Any, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Restow(Root):
    sections = _SECTIONS


app = typer.Typer(
    name="restow",
    cls=_Restow,
    help=_HELP,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


_NOUNS = {
    "groups": _GROUPS_HELP,
    "cluster": _CLUSTER_HELP,
    "topics": _TOPICS_HELP,
    "plan": _PLAN_HELP,
    "snapshot": take.HELP,
    "pipeline": _PIPELINE_HELP,
    "lake": _LAKE_HELP,
}
_COMMANDS: dict[str, Any] = {
    "place": place,
    "broker": broker,
    "broker-check": broker_check,
    "reassign": reassign,
    "show": show,
    "verify": verify,
    "snapshot diff": diff,
    "rehearse": rehearse,
    "execute": execute,
    "watch": watch,
    "control": control,
    "resume": resume,
    "undo": undo,
    "cancel": cancel,
    "doctor": doctor,
    "ui": ui,
    "collect": collect,
    "acls": acls,
    "simulate": simulate,
    "cluster up": up,
    "cluster status": status,
    "topics create": create,
    "topics list": list_topics,
    "topics describe": describe,
    "topics create-partitions": create_partitions,
    "topics delete": delete,
    **{f"plan {name}": each for name, each in PLAN_COMMANDS.items()},
    "plan from-json": from_json,
    "plan rebase": rebase,
    "plan sign": sign,
    "plan compare": compare,
    "plan explain": explain,
    "pipeline run": pipeline_run,
    "pipeline skew": skew,
    "pipeline forecast": forecast,
    "pipeline fleet": fleet,
    "pipeline lab": lab,
    "pipeline rehearse": pipeline_rehearse,
    "pipeline stream": stream,
    "pipeline declare": declare,
    "lake describe": lake_describe,
    "lake compact": lake_compact,
    "lake copy": lake_copy,
    "lake import": lake_import,
    "groups list": list_groups,
    "groups describe": describe_groups,
    "groups lag": lag,
    "groups assign": assign,
    "groups simulate": simulate_groups,
    "groups assignors": assignors,
}
_ALIASES = (("topics expand", create_partitions),)
"""Former names of commands, which still work."""


def _help_if_alone(ctx: typer.Context) -> None:
    """Print the help if no command is given."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _add_commands() -> None:
    groups = {
        noun: typer.Typer(cls=CommandGroup, help=about, invoke_without_command=True, rich_markup_mode=None)
        for noun, about in _NOUNS.items()
    }
    for path, module in (*_COMMANDS.items(), *_ALIASES):
        noun, _, name = path.rpartition(" ")
        add = (groups[noun] if noun else app).command(
            name,
            cls=Command,
            help=module.HELP,
            short_help=module.ABOUT,
            context_settings=_SETTINGS | getattr(module, "SETTINGS", {}),
            hidden=path not in _COMMANDS,
        )
        add(flattened(module.command))
    for noun, group in groups.items():
        group.callback()(take.command if noun == "snapshot" else _help_if_alone)
        app.add_typer(group, name=noun, context_settings=_SETTINGS)


_add_commands()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"restow {__version__}")
        raise typer.Exit


@app.callback()
def root(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001  (its callback has already answered)
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[  # noqa: ARG001  (`Root` reads it from the context)
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Print the help if no command is given."""
    _help_if_alone(ctx)


def run(arguments: Sequence[str]) -> int:
    """Run one command line in this process and return its exit code. Prints as the program would."""
    try:
        app(list(arguments), prog_name="restow")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ASKED_WRONGLY
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def main() -> None:
    """Run the `restow` program."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        let_go_of_stdout()
        code = NOBODY_READS
    sys.exit(code)
