"""The whole story: a lopsided cluster under load is measured, planned for, and put right while it works.

    five brokers, skewed ─► samples ─► load model ─► two brokers more ─► plan ─► rehearsal ─► run
                                                                              ─► verified, nothing lost

Every `$ restow …` line is really run, by the command line's own code.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import textwrap
import time
from contextlib import ExitStack, chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_report import Told, write_report
from demo_run import AWAY_S, KILL_AT, Run
from demo_scenes import BOLD, DIM, GREEN, colour, play, wrapped
from demo_stage import Compiling, Stage

import restow
from restow.plan import read_load, read_plan
from restow.plan.explain.view import seconds_at, view_of
from restow.snapshot import write_snapshot
from restow.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from demo_stage import Read

    from restow.model import Plan, Snapshot, Verdict
    from restow.rehearse import Rehearsal

ACTS = 8
START = Path.cwd()
DATA = "demo"
"""The folder beside the report in which the demo's data is kept."""
RUN_S = 12
"""The throttle is such that the run takes about so long, however much has been written by then."""
VICTIM = 1
SPARK = "--master local[2]"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for seconds had better not spend them on compiling well."""


@dataclass
class Story:
    """The story and the facts that its acts have found so far."""

    report: Path
    keep: bool = False
    began: float = field(default_factory=time.monotonic)
    acts: int = 0
    moments: list[tuple[float, str, bool]] = field(default_factory=list)

    def play(self) -> int:
        """Play all acts and return the exit code."""
        os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED)
        os.environ["RESTOW_CLIENT_SOCKET_CONNECTION_SETUP_TIMEOUT_MS"] = "60000"  # a busy machine is slow
        with ExitStack() as ending:
            folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="restow-demo-"))
            ending.enter_context(chdir(folder))
            compiling = ending.enter_context(Compiling())
            stage = ending.enter_context(Stage(Path(folder)))
            self._cluster(stage)
            self._samples(stage)
            self._model()
            self._more_brokers(stage)
            compiling.wait()
            before = self._plan(stage)
            throttle, rehearsal = self._rehearse(stage)
            run = self._run(stage, throttle, rehearsal)
            verdict, read = self._verify(stage)
            told = Told(
                before=before,
                rehearsal=rehearsal,
                run=run,
                read=read,
                verdict=verdict,
                acks=stage.acks,
                moments=self.moments,
            )
            write_report(told, Path(folder), self.report)
            self._keep_data(stage, Path(folder))
            held = self._conclude(told)
            if self.keep:
                self._wait(stage)
        return 0 if held else 1

    def _cluster(self, stage: Stage) -> None:
        self._act("A cluster that grew lopsided")
        stage.create_topics()
        stage.start_writer()
        stage.start_readers()
        self._tell(
            f"""Five brokers in three racks, each with two log dirs, speak Kafka's protocol. kafka-python has
            written {stage.acks[0][1]:,} records to three topics and goes on writing, acknowledged by all
            in-sync replicas; a group of two reads. Broker 0 leads nearly everything."""
        )
        play(f"restow cluster status -b {stage.bootstrap}")

    def _samples(self, stage: Stage) -> None:
        self._act("Samples")
        self._tell(
            """Restow asks every broker over Kafka's own protocol: sizes, offsets, assignment, groups, disks.
            No agent, no metrics endpoint. Each sample is in the lake exactly once."""
        )
        play(f"restow collect --every 2s --samples 5 --lake lake -b {stage.bootstrap}")

    def _model(self) -> None:
        self._act("What each partition carries")
        self._tell("From the samples: rates, the load model that plans are made with, and who has too much.")
        play(f"restow pipeline run --lake lake --window 4s --load loads --rows 8 {SPARK}")

    def _more_brokers(self, stage: Stage) -> None:
        self._act("Two brokers more")
        new = [stage.cluster.add_broker() for _ in range(2)]
        self.moments.append((time.time(), f"brokers {new[0]} and {new[1]} join", False))
        self._tell(f"Brokers {new[0]} and {new[1]} have joined. They hold nothing; Kafka leaves it at that.")

    def _plan(self, stage: Stage) -> Snapshot:
        self._act("A plan, and how far from the best possible it is")
        before = stage.snapshot()
        play(f"restow plan balance --load {_load()} -o plan.json -b {stage.bootstrap}")
        return before

    def _rehearse(self, stage: Stage) -> tuple[str, Rehearsal]:
        self._act("A rehearsal: how long, and what if a broker dies?")
        plan = read_plan("plan.json")
        throttle = _throttle(plan)
        self._tell(
            f"""The executor runs in virtual time on a model of this cluster. No broker is to send or receive
            more than {throttle}, so that clients do not notice. Broker {VICTIM} dies at a third of the way
            and comes back: that is what will happen to the run below, too."""
        )
        given: dict[str, Any] = {"throttle": throttle, "journal": "journal", "max_under_replicated": 0}
        snapshot, load = stage.snapshot(), read_load(_load())
        back_s = AWAY_S + moment_of(restow.rehearse(plan, snapshot, load, **given).progress, KILL_AT)
        faults = f"broker {VICTIM} dies at {KILL_AT:.0%}", f"broker {VICTIM} comes back at {back_s:.0f}s"
        what_if = " ".join(f'--what-if "{each}"' for each in faults)
        play(
            f"restow rehearse plan.json --throttle {throttle} --load {_load()} {what_if} --journal journal "
            f"-b {stage.bootstrap}",
            must_hold=False,
        )
        return throttle, restow.rehearse(plan, snapshot, load, what_if=faults, **given)

    def _run(self, stage: Stage, throttle: str, rehearsal: Rehearsal) -> Run:
        self._act("The run, under a throttle; a broker dies in the middle")
        self._tell(
            f"""At a third of the way broker {VICTIM} is killed without warning, and comes back {AWAY_S:.0f}
            seconds later. The prediction that the run shows beside its progress knows nothing of that."""
        )
        line = (
            f"restow execute plan.json --yes --throttle {throttle} --load {_load()} --journal journal "
            f"-b {stage.bootstrap}"
        )
        print("\n" + colour("$ " + wrapped(line), GREEN) + "\n", flush=True)
        run = Run(stage, "plan.json", throttle, "journal", VICTIM, _load())
        run.carry_out()
        self.moments += run.moments
        (lost,) = rehearsal.what_if
        self._tell(
            f"""Predicted: {rehearsal.seconds.p50:.0f} s if nothing happens, {lost.seconds:.0f} s with broker
            {VICTIM} lost on the way. Actual, with broker {VICTIM} lost on the way: {run.seconds:.0f} s."""
        )
        return run

    def _verify(self, stage: Stage) -> tuple[Verdict, Read]:
        self._act("Is it done, and is everything still there?")
        self._tell(
            f"""Whatever broker {VICTIM} led when it died, others lead by now. The doctor finds leaders out
            of place and elects the preferred ones."""
        )
        play(f"restow doctor --fix --journal journal -b {stage.bootstrap}", must_hold=False)
        play(f"restow verify plan.json --journal journal -b {stage.bootstrap}", must_hold=False)
        read = stage.stop_writer_and_read()
        verdict = verify(read_plan("plan.json"), stage.snapshot())
        self._tell(
            f"""{read.acked:,} records were acknowledged while all of this went on. Read back from the
            beginning: {read.found:,} of them are there, {read.lost:,} are lost."""
        )
        return verdict, read

    def _keep_data(self, stage: Stage, folder: Path) -> None:
        """Keep what the pages show: the cluster as it is now, the journal, the lake and the load model."""
        kept = self.report.parent / DATA
        shutil.rmtree(kept, ignore_errors=True)
        for name in ("journal", "lake", "loads"):
            shutil.copytree(folder / name, kept / name)
        write_snapshot(stage.snapshot(), kept / "snapshot.json")
        load = kept / "loads" / Path(_load()).name
        self._tell("All of this is kept. To look at it in the browser, without the cluster:")
        where = {
            "snapshot": kept / "snapshot.json",
            "journal": kept / "journal",
            "lake": kept / "lake",
            "load": load,
        }
        flags = " ".join(f"--{name} {_nearby(path)}" for name, path in where.items())
        print("\n" + colour("$ " + wrapped(f"restow ui {flags}"), GREEN))
        self._tell("A finished story that comes with Restow, with runs, an undo and groups: restow ui --demo")

    def _conclude(self, told: Told) -> bool:
        outcome = told.run.outcome
        done = outcome is not None and outcome.is_good
        facts = {
            "acked": told.read.acked,
            "lost": told.read.lost,
            "verified": told.verdict.holds,
            "run": outcome.ending.value if outcome else None,
            "killed": told.run.killed,
            "copied_bytes": told.run.to_do_bytes,
            "predicted_seconds": round(told.rehearsal.what_if[0].seconds, 1),
            "predicted_seconds_without_the_kill": round(told.rehearsal.seconds.p50, 1),
            "actual_seconds": round(told.run.seconds, 1),
            "seconds": round(time.monotonic() - self.began, 1),
            "report": str(self.report),
        }
        print(colour(f"\nThe report: {self.report}", BOLD))
        print(f"demo: {json.dumps(facts)}", flush=True)
        return done and told.verdict.holds and told.run.killed and told.read.lost == 0 and told.read.acked > 0

    def _wait(self, stage: Stage) -> None:
        print(colour(f"\nThe cluster stays up at {stage.bootstrap} until ctrl-C.", DIM), flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            print()

    def _act(self, title: str) -> None:
        self.acts += 1
        clock = f"{time.monotonic() - self.began:.0f} s"
        print(colour(f"\n━━ {self.acts}/{ACTS}  {title} ".ljust(70, "━") + f" {clock}", BOLD), flush=True)

    def _tell(self, text: str) -> None:
        print("\n" + textwrap.fill(" ".join(text.split()), 78), flush=True)


def _load() -> str:
    """Return the load model that the pipeline has made."""
    (found,) = Path("loads").glob("*.parquet")
    return str(found)


def _nearby(path: Path) -> str:
    """Return a path as it is called from where the demo was started."""
    return os.path.relpath(path, START)


def moment_of(progress: Sequence[tuple[float, float]], share: float) -> float:
    """Return when this share of all bytes is copied."""
    wanted = share * progress[-1][1]
    return next(at_s for at_s, copied in progress if copied >= wanted)


def _throttle(plan: Plan) -> str:
    """Return the rate at which the busiest broker is done in time, in steps of 0.5 MB/s."""
    least = seconds_at(view_of(plan), 500_000)
    return f"{max(1, round(least / RUN_S)) / 2:g}MB/s"
