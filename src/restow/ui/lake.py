"""What the pages know of loads: from a lake (`--lake`), from a load model (`--load`), or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import RestowError
from restow.plan.files.reading import read_load

if TYPE_CHECKING:
    from restow.model.load import LoadModel
    from restow.pipeline.findings import LakeFindings


@frozen
class LakeLook:
    """What was found, and what is wrong with the rest."""

    findings: LakeFindings | None = None
    load: LoadModel | None = None
    """The loads of partitions: those of `--load`, else the means of the lake's model."""
    wrong: tuple[str, ...] = ()


class LakeWatch:
    """Reads again what has changed; `last` stays the same object until then. The calls block."""

    def __init__(self, lake: str | None = None, load: str | None = None, recorded: str | None = None) -> None:
        self._lake_path, self._load_path = lake, load
        self._findings: LakeFindings | None = None
        self._load: LoadModel | None = None
        self._wrong = {"lake": "", "load": ""}
        self._seen: dict[str, object] = {}
        self.last = LakeLook()
        if recorded is not None:
            self._findings = _recorded(Path(recorded))

    def refresh(self, cluster_id: str) -> LakeLook:
        """Look at the files, and return what they say now."""
        if self._lake_path is not None:
            self._read_lake(self._lake_path, cluster_id)
        if self._load_path is not None:
            self._read_load(self._load_path, cluster_id)
        load = self._load or (None if self._findings is None else self._findings.load)
        wrong = tuple(each for each in self._wrong.values() if each)
        if self.last.findings is not self._findings or self.last.load is not load or self.last.wrong != wrong:
            self.last = LakeLook(findings=self._findings, load=load, wrong=wrong)
        return self.last

    def _read_lake(self, path: str, cluster_id: str) -> None:
        from restow.pipeline.findings import read_findings, stamps

        try:
            seen = (cluster_id, stamps(path, cluster_id))
            if seen[1] and seen == self._seen.get("lake"):
                return
            self._seen["lake"] = seen
            self._findings, self._wrong["lake"] = read_findings(path, cluster_id), ""
        except RestowError as error:
            self._findings, self._wrong["lake"] = None, str(error)

    def _read_load(self, path: str, cluster_id: str) -> None:
        try:
            seen = (cluster_id, Path(path).stat().st_mtime_ns)
            if seen == self._seen.get("load"):
                return
            self._seen["load"] = seen
            self._load, self._wrong["load"] = read_load(path), ""
        except (RestowError, OSError) as error:
            self._load, self._wrong["load"] = None, f"--load: {error}"
            return
        if (other := self._load.cluster_id) != cluster_id:
            self._load = None
            self._wrong["load"] = f"--load: {path} is of the cluster {other!r}, not of {cluster_id!r}"


def _recorded(path: Path) -> LakeFindings:
    """Read the answer of `/api/v1/lake` back."""
    from restow.pipeline.findings import LakeFindings

    told = json.loads(path.read_bytes())
    return LakeFindings(load=None, week=told["week"], forecast=told["forecast"])
