"""Read plans and the beginnings of journals; large ones in a process of their own.

As JSON, a plan of 100,000 moves fills several hundred megabytes for a second. The server keeps what it shows.

    python -m restow.ui.large_files KIND PATH…      the answer, pickled, for the server that asks
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from restow.errors import InvalidDocument, RestowError
from restow.execute.journal.journal import parse_entries
from restow.execute.predict.prediction import prediction_of
from restow.plan.explain.view import view_of
from restow.plan.files.kafka_json import there_and_back
from restow.plan.files.reading import read_plan
from restow.plan.files.text import digest_of, plan_from
from restow.plan.judge.compare import compare
from restow.runtime.memory import give_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.execute.predict.prediction import Prediction
    from restow.model import BrokerId, Plan, TopicPartition
    from restow.plan.explain.view import PlanView
    from restow.plan.judge.compare import PlanComparison

LARGE_BYTES = 4 * 1024 * 1024


class ShownMove(NamedTuple):
    """A move as a run's page shows it. A tuple, because a run may have a hundred thousand."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    bytes_to_copy: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPlan:
    """A plan as its page shows it."""

    head: Plan
    """The plan without its moves and waves."""
    moves: tuple[ShownMove, ...]
    """In the order of their first steps."""
    bytes_to_copy: int
    view: PlanView
    """Its sums. Before and after count only its own partitions."""
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """The first entry of a journal."""

    at_ms: int
    cluster_id: str
    title: str
    digest: str
    moves: tuple[ShownMove, ...]
    bytes_to_copy: int
    prediction: Prediction | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The others, such as who began it."""


def shown_plan(path: Path) -> ShownPlan:
    """Read a plan file."""
    found: ShownPlan = _read("plan", path.stat().st_size, path)
    return found


def kafka_files(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Kafka's JSON of a plan, and that of the way back."""
    found: tuple[dict[str, Any], dict[str, Any]] = _read("kafka", path.stat().st_size, path)
    return found


def comparison(first: Path, second: Path) -> PlanComparison:
    """Compare two plan files."""
    size = max(first.stat().st_size, second.stat().st_size)
    found: PlanComparison = _read("comparison", size, first, second)
    return found


def run_start(path: Path, size: int) -> RunStart | None:
    """Read the first entry of a journal, whose line has this size; None if it begins with another one."""
    found: RunStart | None = _read("journal", size, path)
    return found


def _read(kind: str, size: int, *paths: Path) -> Any:
    if size <= LARGE_BYTES:
        return _READS[kind](*paths)
    command = [sys.executable, "-m", __name__, kind, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  (our own module)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidDocument(said[-1] if said else f"{paths[0]} could not be read")
    found = pickle.loads(done.stdout)  # noqa: S301  (what our own process wrote)
    del done
    give_back()
    return found


def _plan(path: Path) -> ShownPlan:
    plan = read_plan(path)
    return ShownPlan(
        head=replace(plan, moves=(), waves=()),
        moves=_moves(plan),
        bytes_to_copy=plan.bytes_to_copy,
        view=view_of(plan),
        digest=digest_of(plan),
    )


def _moves(plan: Plan) -> tuple[ShownMove, ...]:
    """Return the moves in their order. They share the ids of brokers and the texts of reasons."""
    ids: dict[BrokerId, BrokerId] = {}
    return tuple(
        ShownMove(
            each.partition,
            tuple([ids.setdefault(broker, broker) for broker in each.before]),
            tuple([ids.setdefault(broker, broker) for broker in each.after]),
            each.bytes_to_copy,
            sys.intern(each.reason),
        )
        for each in plan.moves_in_order
    )


def _kafka(path: Path) -> tuple[dict[str, Any], ...]:
    return tuple(there_and_back(read_plan(path)))


def _comparison(first: Path, second: Path) -> PlanComparison:
    return compare(read_plan(first), read_plan(second))


def _journal(path: Path) -> RunStart | None:
    with path.open("rb") as file:
        entries, _ = parse_entries(file.readline(), str(path))
    if not entries or entries[0].kind != "began":
        return None
    facts: dict[str, Any] = dict(entries[0].facts)
    plan = plan_from(facts.pop("plan"), f"the plan in {path.parent}")
    told = facts.pop("prediction", None)
    return RunStart(
        at_ms=entries[0].at_ms,
        cluster_id=plan.cluster_id,
        title=plan.title,
        digest=digest_of(plan),
        moves=_moves(plan),
        bytes_to_copy=plan.bytes_to_copy,
        prediction=None if told is None else prediction_of(told),
        facts=facts,
    )


_READS: dict[str, Callable[..., object]] = {
    "plan": _plan,
    "journal": _journal,
    "kafka": _kafka,
    "comparison": _comparison,
}


def main() -> int:
    """Read for another process."""
    kind, *paths = sys.argv[1:]
    try:
        found = _READS[kind](*map(Path, paths))
    except (RestowError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
    return 0


if __name__ == "__main__":
    sys.modules["restow.ui.large_files"] = sys.modules["__main__"]  # what is pickled has that name
    for shown in (ShownMove, ShownPlan, RunStart):
        shown.__module__ = "restow.ui.large_files"
    sys.exit(main())
