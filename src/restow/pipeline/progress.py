"""Spark's progress while a command runs: by its status tracker, or as a Connect server tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.pipeline.connect import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession


@frozen
class Stage:
    """A running stage."""

    number: int
    tasks_done: int
    tasks: int


@frozen
class SparkStatus:
    """Spark's progress at one moment."""

    stages: tuple[Stage, ...]
    stages_done: int


class SparkProgress:
    """Reads the progress of one session since this object was made."""

    def __init__(self, spark: SparkSession) -> None:
        self._told: dict[int, Stage] = {}
        self._seen: set[int] = set()
        self._tracker: Any = None
        if is_connect(spark):
            hear: Any = self._hear
            spark.registerProgressHandler(hear)
        else:
            self._tracker = spark.sparkContext.statusTracker()

    def standing(self) -> SparkStatus:
        """Return the running stages. Stages that began and ended between two calls do not count."""
        now = {stage.number: stage for stage in self._active()}
        self._seen |= now.keys()
        return SparkStatus(stages=tuple(now.values()), stages_done=len(self._seen - now.keys()))

    def _active(self) -> Iterator[Stage]:
        if self._tracker is None:
            yield from list(self._told.values())
            return
        for number in self._tracker.getActiveStageIds():
            if (about := self._tracker.getStageInfo(number)) is not None:
                yield Stage(number=number, tasks_done=about.numCompletedTasks, tasks=about.numTasks)

    def _hear(
        self,
        stages: Iterable[Any] | None,
        inflight_tasks: int,  # noqa: ARG002 (the names are Spark's)
        operation_id: str | None,  # noqa: ARG002
        done: bool,
    ) -> None:
        self._told = {
            each.stage_id: Stage(
                number=each.stage_id, tasks_done=each.num_completed_tasks, tasks=each.num_tasks
            )
            for each in stages or ()
            if not each.done and not done
        }
