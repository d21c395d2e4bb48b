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
    │   └── compare           show two plans side by side
    ├── broker                run one broker as a process of its own
    ├── broker-check          check whether a broker can be removed
    ├── execute               carry out a plan
    ├── watch, control        show running reassignments; change a run while it runs
    ├── resume, undo, cancel  continue a run, move it back, cancel its running reassignments
    ├── doctor                find leftover throttles, orphaned reassignments, lagging replicas
    ├── acls                  list the ACLs that a command needs
    ├── collect               sample a cluster periodically into a lake or a topic
    ├── pipeline
    │   ├── run               compute rates, load model, skew and forecast from samples
    │   ├── skew, forecast    show which brokers carry too much; when they reach limits
    │   ├── fleet             plan every cluster, the most urgent first
    │   ├── lab               try every assignor on every consumer group
    │   └── stream            copy samples from a topic into the lake
    ├── lake
    │   └── describe, compact, import
    ├── cluster
    │   ├── up                start a cluster in this process
    │   └── status            show brokers, leaders and replicas out of sync
    ├── topics
    │   └── create, list, describe, create-partitions, delete
    └── groups
        ├── assign            assign a group's partitions to its members
        └── assignors         list the assignors

This module imports only the descriptions of commands. A command imports its work when it runs, so that
`--help` stays fast.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restow import __version__
from restow.cli.cluster import acls, broker
from restow.cli.cluster import status as cluster_status
from restow.cli.cluster import up as cluster_up
from restow.cli.groups import assign as groups_assign
from restow.cli.groups import assignors as groups_assignors
from restow.cli.pipeline import collect, lake_compact, lake_describe, lake_import
from restow.cli.pipeline import fleet as pipeline_fleet
from restow.cli.pipeline import forecast as pipeline_forecast
from restow.cli.pipeline import lab as pipeline_lab
from restow.cli.pipeline import run as pipeline_run
from restow.cli.pipeline import skew as pipeline_skew
from restow.cli.pipeline import stream as pipeline_stream
from restow.cli.place import command as place
from restow.cli.plan import compare as plan_compare
from restow.cli.plan import from_json as plan_from_json
from restow.cli.plan import rebase as plan_rebase
from restow.cli.plan import show
from restow.cli.plan import sign as plan_sign
from restow.cli.plan.requests import COMMANDS as PLAN_COMMANDS
from restow.cli.runs import (
    broker_check,
    cancel,
    control,
    doctor,
    execute,
    reassign,
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
from restow.cli.snapshot import diff as snapshot_diff
from restow.cli.snapshot import take as snapshot_take
from restow.cli.topics import create as topics_create
from restow.cli.topics import create_partitions as topics_create_partitions
from restow.cli.topics import delete as topics_delete
from restow.cli.topics import describe as topics_describe
from restow.cli.topics import list as topics_list

if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = """Kafka partition placement and movement: exact, minimal, undoable.

Compute placements and assignments without a cluster (place, groups), start a cluster to try things on
(cluster up), or inspect an existing one (cluster status, topics).

\b
Examples:
  $ restow place --brokers 0-5 --partitions 12 --replication-factor 3
  $ restow cluster up --brokers 3
  $ restow topics create orders --partitions 12 --bootstrap-server localhost:9092
  $ restow groups assign --assignor sticky --topics orders=12 --members c1,c2,c3
  $ restow place --help
"""

_GROUPS_HELP = """Assign the partitions of consumer groups.

\b
Examples:
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

_LAKE_HELP = """Describe, compact and fill lakes of samples.

\b
Examples:
  $ restow lake describe --lake samples
  $ restow lake compact --lake samples
"""

_SETTINGS: dict[Any, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="restow",
    cls=Root,
    help=_HELP,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_SETTINGS,
)


def _group(about: str) -> typer.Typer:
    return typer.Typer(cls=CommandGroup, help=about, invoke_without_command=True, rich_markup_mode=None)


groups, cluster, topics = _group(_GROUPS_HELP), _group(_CLUSTER_HELP), _group(_TOPICS_HELP)

plans = _group(_PLAN_HELP)
pipelines, lakes = _group(_PIPELINE_HELP), _group(_LAKE_HELP)
snapshots = _group(snapshot_take.HELP)
snapshots.callback()(flattened(snapshot_take.command))

_ALIASES = ((topics, "expand"),)
"""Former names of commands, which still work."""
_commands: tuple[tuple[typer.Typer, str, Any], ...] = (
    (app, "place", place),
    (app, "broker", broker),
    (app, "broker-check", broker_check),
    (app, "reassign", reassign),
    (app, "show", show),
    (app, "verify", verify),
    (snapshots, "diff", snapshot_diff),
    (app, "execute", execute),
    (app, "watch", watch),
    (app, "control", control),
    (app, "resume", resume),
    (app, "undo", undo),
    (app, "cancel", cancel),
    (app, "doctor", doctor),
    (app, "collect", collect),
    (app, "acls", acls),
    (cluster, "up", cluster_up),
    (cluster, "status", cluster_status),
    (topics, "create", topics_create),
    (topics, "list", topics_list),
    (topics, "describe", topics_describe),
    (topics, "create-partitions", topics_create_partitions),
    (topics, "expand", topics_create_partitions),
    (topics, "delete", topics_delete),
    *((plans, name, each) for name, each in PLAN_COMMANDS.items()),
    (plans, "from-json", plan_from_json),
    (plans, "rebase", plan_rebase),
    (plans, "sign", plan_sign),
    (plans, "compare", plan_compare),
    (pipelines, "run", pipeline_run),
    (pipelines, "skew", pipeline_skew),
    (pipelines, "forecast", pipeline_forecast),
    (pipelines, "fleet", pipeline_fleet),
    (pipelines, "lab", pipeline_lab),
    (pipelines, "stream", pipeline_stream),
    (lakes, "describe", lake_describe),
    (lakes, "compact", lake_compact),
    (lakes, "import", lake_import),
    (groups, "assign", groups_assign),
    (groups, "assignors", groups_assignors),
)
for _typer, _name, _module in _commands:
    _own: dict[Any, Any] = getattr(_module, "SETTINGS", {})
    _typer.command(
        _name,
        cls=Command,
        help=_module.HELP,
        short_help=_module.ABOUT,
        context_settings=_SETTINGS | _own,
        hidden=(_typer, _name) in _ALIASES,
    )(flattened(_module.command))
for _typer, _name in (
    (groups, "groups"),
    (cluster, "cluster"),
    (topics, "topics"),
    (plans, "plan"),
    (snapshots, "snapshot"),
    (pipelines, "pipeline"),
    (lakes, "lake"),
):
    app.add_typer(_typer, name=_name, context_settings=_SETTINGS)


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


@groups.callback()
@cluster.callback()
@topics.callback()
@plans.callback()
@pipelines.callback()
@lakes.callback()
def noun_root(ctx: typer.Context) -> None:
    """Print the help if no command is given."""
    _help_if_alone(ctx)


def _help_if_alone(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


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
