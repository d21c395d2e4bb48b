"""`restow simulate`: whole clusters in virtual time, with faults, each run by its seed."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from restow._frozen import frozen
from restow.cli.shared.frame import FAILED, INTERRUPTED, Answer
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from restow.sim.run import SimulationReport
    from restow.sim.scenario import Scenario

ABOUT = "Run clusters in virtual time, with faults, and check that they keep their promises."
HELP = """Run whole clusters in virtual time: the same brokers on a simulated network, disk, clock and store.

Producers write, topics change, replicas move, while brokers, links, disks and the store fail. All the time it
is checked that nothing acknowledged is lost, that each epoch has one leader, and more; after the faults the
cluster must become healthy. A run depends on its seed alone, so that a failure can be repeated.

\b
Examples:
  $ restow simulate --runs 100
  $ restow simulate --seed 42 --duration 1h --brokers 7
  $ restow simulate --seed 42 --faults kill,power-loss,isolate
  $ restow simulate --runs 10 --workloads produce,transactions
  $ restow simulate --seed 42 --trace events.txt
  $ restow simulate --seed 42 --shrink

\b
Exit code 1 says that a promise was broken: the seed and the last events are printed.
"""

_LEAST_BROKERS, _MOST_BROKERS = 3, 50
_MOST_RUNS = 10_000_000
_LARGEST_SEED = 2**63 - 1
_LOOK_EVERY_S = 0.2
_SHOWN_EVENTS = 25
_FEW_RUNS = 4
"""More runs than these per process are worth a short one before them."""


@frozen
class SimulatedRun:
    """A run that has ended, with the settings that repeat it."""

    scenario: Scenario
    report: SimulationReport
    needed_faults: tuple[str, ...] | None = None
    """With --shrink, the faults without any of which the run would pass."""

    def document(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        report = self.report
        shrunk = {} if self.needed_faults is None else {"needed_faults": list(self.needed_faults)}
        return {
            "seed": report.seed,
            "virtual_seconds": round(report.virtual_seconds, 3),
            "wall_seconds": round(report.wall_seconds, 3),
            "speed": round(report.speed, 1),
            "steps": report.steps,
            "faults": report.faults,
            "acked": report.acked,
            "lost": report.lost,
            "violations": list(report.violations),
            "trace": report.trace,
            **shrunk,
        }


def command(
    *,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=_LARGEST_SEED, help="Seed of the first run. Default: a random one."),
    ] = None,
    runs: Annotated[
        int, typer.Option(min=1, max=_MOST_RUNS, help="How many runs, each with the next seed.")
    ] = 1,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="How long the faults go on in virtual time, like 1m or 1h.")
    ] = "1m",
    brokers: Annotated[
        int, typer.Option(min=_LEAST_BROKERS, max=_MOST_BROKERS, help="How many brokers a cluster has.")
    ] = 5,
    faults: Annotated[
        str, typer.Option(metavar="all|none|NAME,…", help="Kinds of faults among which each seed draws.")
    ] = "all",
    workloads: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="What is done meanwhile, like produce,transactions. Default: what each seed draws.",
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the run's events and log lines to this file.")
    ] = None,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Find the fewest faults with which a failing run still fails.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per run, as soon as it ends.")
    ] = False,
) -> Answer:
    if trace is not None and runs > 1:
        raise InvalidInput("--trace: writes the events of one run: leave out --runs")
    scenarios = _scenarios(seed, runs, duration, brokers, faults, workloads)
    if trace is not None:
        _check_writable(trace)
    ended: list[SimulatedRun] = []
    interrupted = False
    for run in _all_ended(scenarios, trace, shrink=shrink, quiet=as_json):
        if run is None:
            interrupted = True
            break
        ended.append(run)
        if as_json:
            sys.stdout.write(json.dumps(run.document()) + "\n")
            sys.stdout.flush()
    failed = any(run.report.violations for run in ended)
    code = FAILED if failed else INTERRUPTED if interrupted else 0
    if as_json:
        raise typer.Exit(code)
    return Answer(
        document=lambda: [run.document() for run in ended],
        draw=lambda console: _draw(console, ended, wanted=runs),
        as_json=False,
        code=code,
    )


def _scenarios(
    seed: int | None, runs: int, duration: str, brokers: int, faults: str, workloads: str | None
) -> Sequence[Scenario]:
    from restow.runtime.chance import SystemChance
    from restow.sim.faults import KINDS
    from restow.sim.scenario import Scenario
    from restow.sim.workloads import WORKLOADS
    from restow.sizes import milliseconds

    first = SystemChance().randrange(1_000_000_000) if seed is None else seed
    duration_s = milliseconds(duration, "--duration") / 1000
    kinds = {"all": KINDS, "none": ()}.get(faults)
    if kinds is None:
        kinds = _names(faults, KINDS, "--faults", "fault", "all, none, or ")
    work = None if workloads is None else _names(workloads, WORKLOADS, "--workloads", "workload", "")
    return [
        Scenario(seed=each, duration_s=duration_s, brokers=brokers, faults=kinds, workloads=work)
        for each in range(first, first + runs)
    ]


def _names(text: str, known: Iterable[str], option: str, what: str, else_write: str) -> tuple[str, ...]:
    """Return the names in a list, each once; raise InvalidInput for one that is not known."""
    from restow.cli.shared.flags import parse_names

    known = tuple(known)
    names = tuple(dict.fromkeys(parse_names(text, option)))
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"{option}: there is no {what} {name!r}: write {else_write}names of {', '.join(known)}"
            )
    return names


def _check_writable(path: str) -> None:
    try:
        with open(path, "w", encoding="utf-8"):  # noqa: PTH123
            pass
    except OSError as error:
        raise InvalidInput(f"--trace: {path!r} cannot be written: {error.strerror}") from error


def _all_ended(
    scenarios: Sequence[Scenario], trace: str | None, *, shrink: bool, quiet: bool
) -> Iterator[SimulatedRun | None]:
    """Yield the runs in the order of their seeds, and None at the end if ctrl-C came first."""
    from restow.cli.shared.signals import told_to_stop_here
    from restow.sim.run import warm_up
    from restow.sim.spread import spread

    processes = min(len(scenarios), os.cpu_count() or 1)
    with told_to_stop_here() as told, _Progress(len(scenarios), quiet=quiet) as progress:
        if len(scenarios) > _FEW_RUNS * processes:
            warm_up()
        tasks = [(each, trace, shrink) for each in scenarios]
        with closing(spread(_run, tasks, processes=processes, look_every_s=_LOOK_EVERY_S)) as runs:
            for run in runs:
                if told.is_set():
                    yield None
                    return
                if run is None:
                    progress.show()
                else:
                    progress.note(run)
                    yield run


def _run(task: tuple[Scenario, str | None, bool]) -> SimulatedRun:
    """Simulate one scenario in a process that ends with it."""
    from restow.sim import run as simulation
    from restow.sim.shrink import shrink

    scenario, trace, wants_shrink = task
    if trace is None:
        report = simulation.simulate_safely(scenario, leave_garbage=True)
    else:
        with open(trace, "w", encoding="utf-8") as file:  # noqa: PTH123
            report = simulation.simulate_safely(scenario, trace=file, leave_garbage=True)
    needed = None
    if wants_shrink and report.violations:
        found = shrink(scenario, lambda each: bool(simulation.simulate_safely(each).violations))
        needed = tuple(map(str, found))
    return SimulatedRun(scenario=scenario, report=report, needed_faults=needed)


class _Progress:
    """One line on a terminal's stderr, erased at the end."""

    def __init__(self, wanted: int, *, quiet: bool) -> None:
        self._wanted, self._ended, self._failed = wanted, 0, 0
        self._shown = sys.stderr.isatty() and not quiet

    def __enter__(self) -> _Progress:
        self.show()
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def note(self, run: SimulatedRun) -> None:
        self._ended += 1
        self._failed += bool(run.report.violations)
        self.show()

    def show(self) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[2K{self._ended} of {self._wanted} runs, {self._failed} failed")
            sys.stderr.flush()


def _draw(console: Console, ended: Sequence[SimulatedRun], *, wanted: int) -> None:
    from restow.sizes import count

    for run in ended:
        if run.report.violations:
            _draw_failure(console, run)
    reports = [run.report for run in ended]
    virtual_s = sum(each.virtual_seconds for each in reports)
    wall_s = sum(each.wall_seconds for each in reports)
    if len(ended) < wanted:
        console.print(f"Interrupted: {len(ended)} of {wanted} runs ended.")
    if not ended:
        return
    failed = sum(bool(each.violations) for each in reports)
    seeds = f"seed {reports[0].seed}" if len(ended) == 1 else f"seeds {reports[0].seed} to {reports[-1].seed}"
    console.print(
        f"{count(len(ended), 'run')} ({seeds}), {virtual_s:,.0f} virtual seconds at "
        f"{virtual_s / wall_s if wall_s else 0:,.0f} times real time per core"
    )
    console.print(
        f"{sum(each.steps for each in reports):,} steps, "
        f"{count(sum(each.faults for each in reports), 'fault')}, "
        f"{count(sum(each.acked for each in reports), 'record')} acknowledged, "
        f"{sum(each.lost for each in reports):,} lost"
    )
    console.print(f"{count(failed, 'run')} failed" if failed else "No promise was broken.")


def _draw_failure(console: Console, run: SimulatedRun) -> None:
    report, scenario = run.report, run.scenario
    console.print(f"Seed {report.seed} broke promises:")
    for violation in report.violations:
        console.print(f"  {violation}")
    console.print("Its last events:")
    for event in report.last_events[-_SHOWN_EVENTS:]:
        console.print(f"  {event}")
    if run.needed_faults is not None:
        console.print(
            "It still fails with these faults alone:" if run.needed_faults else "It fails without any fault."
        )
        for fault in run.needed_faults:
            console.print(f"  {fault}")
    named = "" if scenario.workloads is None else f" --workloads {','.join(scenario.workloads)}"
    console.print(
        f"Repeat it with: restow simulate --seed {report.seed} --duration {scenario.duration_s:g}s "
        f"--brokers {scenario.brokers} --faults {_faults_flag(scenario.faults)}{named}"
    )
    console.print()


def _faults_flag(kinds: tuple[str, ...]) -> str:
    from restow.sim.faults import KINDS

    return "all" if kinds == KINDS else ",".join(kinds) or "none"
