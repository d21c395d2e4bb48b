"""Plans and rehearsals that were made on pages, each in a folder of its own.

<journals>/ui/<cluster id>/
  audit.jsonl
  plans/20261115-082137-3f9a/
    request.json  plan.json  out.json  err.txt  (of a large plan also shown.json  moves.sqlite)
    rehearsals/20261115-082240-77b0/
      request.json  out.json  err.txt
"""

from __future__ import annotations

import json
import re
import secrets
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.execute.journal.runs import runs_of
from restow.runtime.disk import SystemDisk
from restow.ui.jobs import OUT, complaint
from restow.ui.large_files import is_read_soon, shown_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.runtime.clock import Clock
    from restow.ui.large_files import ShownPlan

PLAN, REQUEST = "plan.json", "request.json"
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}")
_KEPT_PLANS = 8
_MOST_BYTES = 512 * 1024 * 1024


@frozen
class StoredRehearsal:
    """A rehearsal, or one that failed or is not done."""

    id: str
    folder: Path
    request: Mapping[str, Any]

    def told(self) -> dict[str, Any] | None:
        """Return what the command printed; None if it printed nothing yet, or an error."""
        return _document(self.folder / OUT)

    @property
    def wrong(self) -> str:
        return complaint(self.folder)


@frozen
class StoredPlan:
    """A plan, or one that failed or is not done."""

    id: str
    folder: Path
    request: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return self.folder / PLAN

    @property
    def is_there(self) -> bool:
        return self.path.exists()

    @property
    def title(self) -> str:
        return str(self.request.get("title", "plan"))

    @property
    def wrong(self) -> str:
        return complaint(self.folder)

    def told(self) -> dict[str, Any] | None:
        """Return what the command that made it printed."""
        return _document(self.folder / OUT)

    def rehearsals(self) -> list[StoredRehearsal]:
        """Return its rehearsals, newest first."""
        below = self.folder / "rehearsals"
        return [
            StoredRehearsal(id=name, folder=below / name, request=_document(below / name / REQUEST) or {})
            for name in _names(below)
        ]


class PlanStore:
    """The plans of one cluster."""

    def __init__(self, root: str, cluster_id: str, clock: Clock) -> None:
        name = Path(runs_of(SystemDisk(), root, cluster_id).folder).name
        self.folder = Path(root) / "ui" / name
        self._clock = clock
        self._read: OrderedDict[str, tuple[tuple[int, int], ShownPlan]] = OrderedDict()

    def new_id(self) -> str:
        """Return an unused id, made from the time."""
        moment = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"

    def new(self, request: Mapping[str, Any], below: StoredPlan | None = None) -> tuple[str, Path]:
        """Make the folder of a plan, or of a rehearsal of one, and write down what was asked for."""
        name = self.new_id()
        folder = (self.folder / "plans" if below is None else below.folder / "rehearsals") / name
        folder.mkdir(mode=0o700, parents=True)
        (folder / REQUEST).write_text(json.dumps(dict(request)), encoding="utf-8")
        return name, folder

    def all(self) -> list[StoredPlan]:
        """Return the plans, newest first."""
        below = self.folder / "plans"
        return [self._stored(name) for name in _names(below)]

    def get(self, name: str) -> StoredPlan | None:
        """Return a plan by its id."""
        return self._stored(name) if name in _names(self.folder / "plans") else None

    def _stored(self, name: str) -> StoredPlan:
        folder = self.folder / "plans" / name
        return StoredPlan(id=name, folder=folder, request=_document(folder / REQUEST) or {})

    def read(self, stored: StoredPlan) -> ShownPlan:
        """Return a plan as pages show it. The latest few are kept in memory."""
        found = stored.path.stat()
        mark = found.st_size, found.st_mtime_ns
        known = self._read.get(stored.id)
        if known is None or known[0] != mark:
            known = mark, shown_plan(stored.path)
            self._read[stored.id] = known
            while len(self._read) > _KEPT_PLANS:
                self._read.popitem(last=False)
        return known[1]

    def is_read_soon(self, stored: StoredPlan) -> bool:
        """Return whether reading a plan takes no more than a moment."""
        return stored.id in self._read or is_read_soon(stored.path)

    def rehearsal(self, plan: StoredPlan, name: str) -> StoredRehearsal | None:
        """Return a rehearsal of a plan by its id."""
        return next((each for each in plan.rehearsals() if each.id == name), None)


def _names(folder: Path) -> list[str]:
    """Return the ids in a folder, newest first."""
    try:
        return sorted((each.name for each in folder.iterdir() if _ID.fullmatch(each.name)), reverse=True)
    except OSError:
        return []


def _document(path: Path) -> dict[str, Any] | None:
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
