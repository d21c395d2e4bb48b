"""Read plans and the beginnings of journals; large ones in a process of their own.

As JSON, a plan of 100,000 moves fills several hundred megabytes for a second, and takes seconds to read. So
what is shown of a large one is kept in a folder, and only read again if that is damaged or of another text:

    shown.json      the digest of what was read, what is shown of it besides moves, the digest of the moves
    moves.sqlite    the moves

    python -m restow.ui.large_files KIND PATH…      reads for a server that asks
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
from dataclasses import asdict, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.errors import InvalidDocument, RestowError
from restow.execute.journal.journal import parse_entries
from restow.execute.predict.prediction import prediction_of
from restow.plan.explain.view import BrokerChange, DirChange, Load, PlanView, view_of
from restow.plan.files.kafka_json import there_and_back
from restow.plan.files.reading import read_plan
from restow.plan.files.text import digest_of, dumps, loads, plan_from
from restow.plan.judge.compare import compare
from restow.runtime.memory import give_back
from restow.ui.moves import FiledMoves, ListedMoves, shown_moves, write_moves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.execute.predict.prediction import Prediction
    from restow.model import Plan
    from restow.plan.judge.compare import PlanComparison
    from restow.ui.moves import Moves

LARGE_BYTES = 4 * 1024 * 1024
MOST_PLAN_BYTES = 512 * 1024 * 1024
"""Two million moves. As JSON, a plan needs ten times as much memory as its file is large."""
_FORMAT = 1
_SHOWN, _MOVES = "shown.json", "moves.sqlite"


@frozen
class ShownPlan:
    """A plan as its page shows it."""

    head: Plan
    """The plan without its moves and waves."""
    moves: Moves
    """In the order of their first steps."""
    bytes_to_copy: int
    view: PlanView
    """Its sums. Before and after count only its own partitions."""
    digest: str


@frozen
class RunStart:
    """The first entry of a journal."""

    at_ms: int
    cluster_id: str
    title: str
    digest: str
    moves: Moves
    bytes_to_copy: int
    prediction: Prediction | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The others, such as who began it."""


def shown_plan(path: Path) -> ShownPlan:
    """Read a plan file. What is shown of a large one is kept beside it."""
    size = _size(path)
    told, moves = _kept("plan", path, size, path.parent) if size > LARGE_BYTES else _here("plan", path)
    return ShownPlan(
        head=loads(told["head"]),
        moves=moves,
        bytes_to_copy=told["bytes_to_copy"],
        view=_view(told["view"]),
        digest=told["digest"],
    )


def is_read_soon(path: Path) -> bool:
    """Return whether a plan file is small, or what is shown of it is kept beside it."""
    return _size(path) <= LARGE_BYTES or (path.parent / _SHOWN).exists()


def run_start(path: Path, size: int, keep: Path) -> RunStart | None:
    """Read the first entry of a journal, whose line has this size; None if it begins with another one.

    What is shown of a large one is kept in a folder of its own.
    """
    told, moves = _kept("journal", path, size, keep) if size > LARGE_BYTES else _here("journal", path)
    if not told:
        return None
    said = told.pop("prediction")
    return RunStart(moves=moves, prediction=None if said is None else prediction_of(said), **told)


def kafka_files(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return Kafka's JSON of a plan, and that of the way back."""
    found: tuple[dict[str, Any], dict[str, Any]] = _read("kafka", _size(path), path)
    return found


def comparison(first: Path, second: Path) -> PlanComparison:
    """Compare two plan files."""
    size = max(_size(first), _size(second))
    found: PlanComparison = _read("comparison", size, first, second)
    return found


def _size(path: Path) -> int:
    """Return the size of a plan file, if that can be read."""
    size = path.stat().st_size
    if size > MOST_PLAN_BYTES:
        raise InvalidDocument(
            f"{path} is larger than {MOST_PLAN_BYTES // 2**20} MiB, the most that pages read of a plan: "
            "look at it with `restow show`"
        )
    return size


def _read(kind: str, size: int, *paths: Path) -> Any:
    if size <= LARGE_BYTES:
        return _READS[kind](*paths)
    found = pickle.loads(_in_a_process(kind, *paths))  # noqa: S301  (what our own process wrote)
    give_back()
    return found


def _in_a_process(*words: str | Path) -> bytes:
    command = [sys.executable, "-m", __name__, *map(str, words)]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  (our own module)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InvalidDocument(said[-1] if said else "a large file could not be read")
    return done.stdout


def _here(kind: str, path: Path) -> tuple[dict[str, Any], Moves]:
    """Read a small file in this process, and keep nothing."""
    told, plan = _TELLS[kind](path)
    return told, ListedMoves(() if plan is None else tuple(shown_moves(plan)))


def _kept(kind: str, path: Path, size: int, folder: Path) -> tuple[dict[str, Any], Moves]:
    """Return what is kept of the beginning of a file; keep it first if it is not there or not sound."""
    folder = _writable(folder)
    digest = _digest(path, size)
    found = _sound(folder, digest)
    if found is None:
        _in_a_process("keep", kind, path, folder, digest)
        found = _sound(folder, digest)
    if found is None:
        raise InvalidDocument(f"what is shown of {path} cannot be kept in {folder}: is its disk full?")
    return found


def _sound(folder: Path, digest: str) -> tuple[dict[str, Any], Moves] | None:
    """Return what is kept in a folder, if it is of this text and whole."""
    moves = folder / _MOVES
    try:
        found = json.loads((folder / _SHOWN).read_bytes())
        if (found["format"], found["of"]) != (_FORMAT, digest) or found["moves"] != _digest(moves):
            return None
        return found["told"], FiledMoves(moves, found["count"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _keep(kind: str, path: Path, folder: Path, digest: str) -> None:
    told, plan = _TELLS[kind](path)
    moves = () if plan is None else tuple(shown_moves(plan))
    with tempfile.TemporaryDirectory(prefix=".shown-", dir=folder) as name:
        made = Path(name)
        write_moves(moves, made / _MOVES)
        shown = {"format": _FORMAT, "of": digest, "count": len(moves), "moves": _digest(made / _MOVES)}
        (made / _SHOWN).write_text(json.dumps({**shown, "told": told}), encoding="utf-8")
        for each in (_MOVES, _SHOWN):
            (made / each).replace(folder / each)


def _digest(path: Path, size: int | None = None) -> str:
    """Return the digest of a file, or of so many of its first bytes."""
    with path.open("rb") as file:
        if size is None:
            return hashlib.file_digest(file, "sha256").hexdigest()
        found, left = hashlib.sha256(), size
        while left > 0 and (piece := file.read(min(left, 2**20))):
            found.update(piece)
            left -= len(piece)
        return found.hexdigest()


def _writable(folder: Path) -> Path:
    """Return a folder, or one that lasts as long as this process if nothing can be written there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    instead = Path(_spare().name) / hashlib.sha256(os.fsencode(folder)).hexdigest()
    instead.mkdir(exist_ok=True)
    return instead


@cache
def _spare() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="restow-ui-")


def _plan(path: Path) -> tuple[dict[str, Any], Plan | None]:
    plan = read_plan(path)
    told = {
        "head": dumps(replace(plan, moves=(), waves=())),
        "bytes_to_copy": plan.bytes_to_copy,
        "view": asdict(view_of(plan)),
        "digest": digest_of(plan),
    }
    return told, plan


def _view(told: Mapping[str, Any]) -> PlanView:
    brokers = tuple(
        BrokerChange(**{**each, "before": Load(**each["before"]), "after": Load(**each["after"])})
        for each in told["brokers"]
    )
    return PlanView(**{**told, "brokers": brokers, "dirs": tuple(DirChange(**each) for each in told["dirs"])})


def _journal(path: Path) -> tuple[dict[str, Any], Plan | None]:
    with path.open("rb") as file:
        entries, _ = parse_entries(file.readline(), str(path))
    if not entries or entries[0].kind != "began":
        return {}, None
    facts: dict[str, Any] = dict(entries[0].facts)
    plan = plan_from(facts.pop("plan"), f"the plan in {path.parent}")
    told = {
        "at_ms": entries[0].at_ms,
        "cluster_id": plan.cluster_id,
        "title": plan.title,
        "digest": digest_of(plan),
        "bytes_to_copy": plan.bytes_to_copy,
        "prediction": facts.pop("prediction", None),
        "facts": facts,
    }
    return told, plan


def _kafka(path: Path) -> tuple[dict[str, Any], ...]:
    return tuple(there_and_back(read_plan(path)))


def _comparison(first: Path, second: Path) -> PlanComparison:
    return compare(read_plan(first), read_plan(second))


_TELLS: dict[str, Callable[[Path], tuple[dict[str, Any], Plan | None]]] = {"plan": _plan, "journal": _journal}
_READS: dict[str, Callable[..., object]] = {
    "kafka": _kafka,
    "comparison": _comparison,
}


def main() -> int:
    """Read for another process. Collecting garbage would take a quarter of the time, and free nothing."""
    gc.disable()
    kind, *words = sys.argv[1:]
    try:
        if kind == "keep":
            what, path, folder, digest = words
            _keep(what, Path(path), Path(folder), digest)
        else:
            sys.stdout.buffer.write(pickle.dumps(_READS[kind](*map(Path, words)), pickle.HIGHEST_PROTOCOL))
    except (RestowError, OSError, ValueError, TypeError, KeyError, AttributeError, sqlite3.Error) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
