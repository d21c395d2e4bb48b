"""All logs of one broker, in one or more log dirs.

A new log goes to the log dir with the fewest logs. A log dir with a failed disk goes offline with its logs;
the others go on. `tend` does the periodic work (flush, retention, compaction, removal) and looks only at logs
that are due.
"""

from __future__ import annotations

from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from restow.cluster.log.cleaner import clean, is_due, next_due_ms
from restow.cluster.log.config import FOREVER
from restow.cluster.log.directory import LogDirectory
from restow.cluster.log.errors import DiskFailure, LogDirsOffline, LogError, TopicIdMismatch, UnknownLog
from restow.cluster.log.futures import FutureLogs, newer
from restow.cluster.log.retention import due_ms, expired_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from restow.cluster.log.checkpoint import MetaProperties
    from restow.cluster.log.config import LogConfig
    from restow.cluster.log.log import PartitionLog
    from restow.model import TopicPartition
    from restow.runtime.disk import Disk

_CHECK_INTERVAL_MS = 5 * 60 * 1000
_CLEANER_BACKOFF_MS = 15 * 1000
_MOST_PREFERRED = 10_000


class LogManager:
    """The log dirs of one broker. Nothing is touched before `start`."""

    def __init__(
        self,
        disk: Disk,
        paths: Sequence[str],
        meta: MetaProperties,
        *,
        config_of: Callable[[str], LogConfig],
        now_ms: Callable[[], int],
        on_directory_failure: Callable[[str, tuple[TopicPartition, ...]], None],
        check_interval_ms: int = _CHECK_INTERVAL_MS,
        cleaner_backoff_ms: Callable[[], int] = lambda: _CLEANER_BACKOFF_MS,
        cordoned: Callable[[], Container[str]] = tuple,
    ) -> None:
        """`config_of` returns a topic's settings; `on_directory_failure` gets the partitions that went
        offline. `cordoned` returns log dirs that get no new logs while there are others.
        """
        self._meta = meta
        self._config_of = config_of
        self._now_ms = now_ms
        self._on_directory_failure = on_directory_failure
        self._check_interval_ms = check_interval_ms
        self._cleaner_backoff_ms = cleaner_backoff_ms
        self.cordoned = cordoned
        self._due: list[tuple[int, int, PartitionLog]] = []
        self._grows_old_at: dict[PartitionLog, int] = {}
        self._ticket = count()
        self._home: dict[TopicPartition, LogDirectory] = {}
        self.directories = tuple(
            LogDirectory(disk, path, on_failure=self._failed, on_append=self._attend) for path in paths
        )
        self.futures = FutureLogs(self.directories, self._home)
        self._preferred: dict[TopicPartition, str] = {}
        """Requested log dirs of logs that do not exist yet."""

    def start(self) -> None:
        """Load every log dir. An unreadable one is offline; raises if all are."""
        for directory in self.directories:
            try:
                directory.load(self._meta, self._config_of)
            except DiskFailure:
                continue
            except LogError:
                self.release()
                raise
            for partition, log in tuple(directory.logs.items()):
                if self._settle_home(partition, directory):
                    self._attend(log)
        self._require_online()
        self.futures.drop_strangers()

    def _settle_home(self, partition: TopicPartition, directory: LogDirectory) -> bool:
        """Return whether to keep the log found there. An unfinished swap leaves two."""
        other = self._home.get(partition)
        if other is not None:
            kept = newer(directory.logs[partition], other.logs[partition])
            if kept is other.logs[partition]:
                directory.doom(partition)
                return False
            other.doom(partition)
        self._home[partition] = directory
        return True

    def close(self) -> None:
        """Close all logs cleanly, so that the next start needs no recovery."""
        for directory in self.directories:
            if directory.is_online:
                with suppress(DiskFailure):
                    directory.close()

    def release(self) -> None:
        """Close the files without writing, as if the process had been killed."""
        for directory in self.directories:
            directory.release()
        self._home.clear()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Return the partitions whose logs are here and online."""
        return tuple(self._home)

    @property
    def offline(self) -> tuple[str, ...]:
        """Return the log dirs whose disk has failed."""
        return tuple(directory.path for directory in self.directories if not directory.is_online)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """Return a log that is here and online."""
        home = self._home.get(partition)
        return None if home is None else home.logs.get(partition)

    def directory_of(self, partition: TopicPartition) -> LogDirectory:
        """Return the log dir of a partition's log."""
        try:
            return self._home[partition]
        except KeyError:
            raise UnknownLog(f"there is no log of {partition} in the log dirs that are online") from None

    def topic_id_of(self, partition: TopicPartition) -> str | None:
        """Return the topic id of the log, if it is known."""
        home = self._home.get(partition)
        return None if home is None else home.topic_ids.get(partition)

    def get_or_create(
        self,
        partition: TopicPartition,
        *,
        topic_id: str | None = None,
        is_new: bool = False,
    ) -> PartitionLog:
        """Return the log, or create it in the requested log dir or the one with the fewest logs.

        Unless `is_new`, a log may be in an offline log dir. It is then not created elsewhere, because its
        records would be missing there.
        """
        log = self.get(partition)
        if log is not None:
            self._check_topic_id(partition, topic_id)
            return log
        online = self._require_online()
        if self.offline and not is_new:
            raise LogDirsOffline(
                f"the log of {partition} may be in a log dir that is offline: {', '.join(self.offline)}"
            )
        wanted = self._preferred.pop(partition, None)
        preferred = [directory for directory in online if directory.path == wanted]
        cordoned = self.cordoned()
        open_ones = [directory for directory in online if directory.path not in cordoned] or online
        home = (preferred or sorted(open_ones, key=lambda each: len(each.logs) + len(each.futures)))[0]
        log = home.create(partition, self._config_of(partition.topic), topic_id)
        self._home[partition] = home
        return log

    def delete(self, partition: TopicPartition) -> None:
        """Take a log and its copy out of use at once; `tend` removes the files later."""
        self.futures.drop(partition)
        self.directory_of(partition).doom(partition)
        del self._home[partition]

    def delete_stray(self, partition: TopicPartition) -> None:
        """Delete a log that no topic assigns to this broker, under a name that says so."""
        if (copied := self.futures.directory_of(partition)) is not None:
            copied.doom(partition, future=True, mark="stray")
        if (home := self._home.pop(partition, None)) is not None:
            home.doom(partition, mark="stray")

    def prefer(self, partition: TopicPartition, path: str) -> None:
        """Request the log dir of a future log. Beyond a limit, the oldest requests are forgotten."""
        self._preferred.pop(partition, None)
        self._preferred[partition] = path
        if len(self._preferred) > _MOST_PREFERRED:
            del self._preferred[next(iter(self._preferred))]

    def begin_move(self, partition: TopicPartition, target: LogDirectory) -> None:
        """Start a copy of a log in another log dir."""
        self.directory_of(partition)
        self.futures.begin(partition, target)

    def replace_with_future(self, partition: TopicPartition) -> PartitionLog:
        """Replace the log by its copy in another log dir, which has caught up."""
        log = self.futures.swap(partition)
        self._attend(log)
        return log

    def reconfigure(self, topic: str | None = None) -> None:
        """Apply the changed settings of the topic, or of all topics."""
        for partition, home in self._home.items():
            if topic is None or partition.topic == topic:
                log = home.logs[partition]
                log.config = self._config_of(partition.topic)
                self._attend(log)
        for directory in self.directories:
            for partition, log in directory.futures.items():
                if topic is None or partition.topic == topic:
                    log.config = self._config_of(partition.topic)

    def checkpoint(self) -> None:
        """Write the checkpoints of all logs."""
        for directory in self.directories:
            if directory.is_online:
                with suppress(DiskFailure):
                    directory.checkpoint()

    @property
    def next_due_ms(self) -> int | None:
        """Return when `tend` is due, or None if not before the next append or deletion."""
        if any(directory.has_chores and directory.is_online for directory in self.directories):
            return self._now_ms()
        return self._due[0][0] if self._due else None

    def tend(self) -> Iterator[None]:
        """Do what is due, and yield after each small step, so that other work can run."""
        for directory in self.directories:
            while directory.has_chores and directory.is_online:
                try:
                    directory.do_a_chore()
                except DiskFailure:
                    break
                yield
        now_ms = self._now_ms()
        while self._due and self._due[0][0] <= now_ms:
            at_ms, _, log = heappop(self._due)
            if self._grows_old_at.get(log) == at_ms:
                del self._grows_old_at[log]
            if not log.closed:
                try:
                    yield from self._tend_log(log, now_ms)
                except DiskFailure:
                    continue
            yield

    def _tend_log(self, log: PartitionLog, now_ms: int) -> Iterator[None]:
        log.attended = False
        config = log.config
        if config.flush_ms != FOREVER and log.recovery_point < log.end_offset:
            log.flush()
        if expired := expired_segments(log, now_ms):
            log.drop_segments(expired)
        log.producers.expire(now_ms - config.producer_expiration_ms)
        if config.cleanup_compact:
            yield from self._compact(log, now_ms)
        due = due_ms(log)
        if due is not None and not log.closed:
            self._look_again_at(log, max(due, now_ms + self._check_interval_ms))

    def _compact(self, log: PartitionLog, now_ms: int) -> Iterator[None]:
        home = self._home.get(log.partition)
        if home is None or home.logs.get(log.partition) is not log:
            return
        first_dirty = home.first_dirty.get(log.partition, 0)
        if is_due(log, first_dirty, now_ms):
            first_dirty = yield from clean(log, home.disk, first_dirty, now_ms)
            if log.closed:
                return
            home.first_dirty[log.partition] = first_dirty
        again_ms = next_due_ms(log, first_dirty, now_ms)
        if again_ms is not None:
            self._look_again_at(log, max(again_ms, now_ms + max(self._cleaner_backoff_ms(), 1)))

    def _attend(self, log: PartitionLog) -> None:
        """Schedule a log's maintenance; soon, if it needs a flush."""
        if not log.attended:
            log.attended = True
            config = log.config
            wait_ms = min(self._check_interval_ms, config.flush_ms)
            if config.cleanup_compact:
                wait_ms = min(wait_ms, self._cleaner_backoff_ms())
            at_ms = self._now_ms() + wait_ms
            heappush(self._due, (at_ms, next(self._ticket), log))

    def _look_again_at(self, log: PartitionLog, at_ms: int) -> None:
        """Schedule a check even without appends; appends schedule their own."""
        if at_ms < self._grows_old_at.get(log, FOREVER):
            self._grows_old_at[log] = at_ms
            heappush(self._due, (at_ms, next(self._ticket), log))

    def _failed(self, directory: LogDirectory, _: DiskFailure) -> None:
        directory.release()
        lost = tuple(partition for partition, home in self._home.items() if home is directory)
        for partition in lost:
            del self._home[partition]
        self._on_directory_failure(directory.path, lost)

    def _require_online(self) -> list[LogDirectory]:
        online = [directory for directory in self.directories if directory.is_online]
        if not online:
            raise LogDirsOffline(f"all log dirs are offline: {', '.join(self.offline)}")
        return online

    def _check_topic_id(self, partition: TopicPartition, topic_id: str | None) -> None:
        if topic_id is None:
            return
        found = self._home[partition].topic_ids.get(partition)
        if found is None:
            self._home[partition].set_topic_id(partition, topic_id)
        elif found != topic_id:
            raise TopicIdMismatch(
                f"the log of {partition} belongs to a topic of id {found}, not {topic_id}: "
                "the topic was deleted and made again"
            )
