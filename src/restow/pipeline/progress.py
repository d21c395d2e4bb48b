"""How far Spark is: stages, tasks and rows, asked of the session while another thread waits for answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One that is under way."""

    number: int
    name: str
    tasks_done: int
    tasks: int
    rows: int
    """Read from files and from other stages, so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkStatus:
    """All there is to say at one moment."""

    stages: tuple[Stage, ...]
    stages_done: int
    rows_done: int
    """Read by stages that have ended."""

    @property
    def rows(self) -> int:
        return self.rows_done + sum(stage.rows for stage in self.stages)


class SparkProgress:
    """Of one session, from the moment it is made."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext._jsc  # noqa: SLF001  (the only way to the status of stages)
        self._store: Any = context.sc().statusStore()
        self._under_way: dict[int, Stage] = {}
        self._ended: dict[int, int] = {}

    def standing(self) -> SparkStatus:
        """What is under way now; stages that came and went between two questions are not counted."""
        now = {stage.number: stage for stage in self._active()}
        self._ended |= {
            number: self._under_way[number].rows for number in self._under_way.keys() - now.keys()
        }
        self._under_way = now
        return SparkStatus(
            stages=tuple(now.values()), stages_done=len(self._ended), rows_done=sum(self._ended.values())
        )

    def _active(self) -> Iterator[Stage]:
        listed = self._store.activeStages()
        for at in range(listed.size()):
            data = listed.apply(at)
            yield Stage(
                number=data.stageId(),
                name=data.name().partition(" at ")[0],
                tasks_done=data.numCompleteTasks(),
                tasks=data.numTasks(),
                rows=data.inputRecords() + data.shuffleReadRecords(),
            )
