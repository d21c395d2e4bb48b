"""The stage of the story: a cluster in this process, and clients in processes of their own."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from demo_load import TOPICS, everything

from restow.client import ConnectionSettings, NewTopic, connected
from restow.cluster.threaded import ThreadedCluster
from restow.runtime.clock import SystemClock
from restow.snapshot import capture

if TYPE_CHECKING:
    from types import TracebackType

    from restow.model import Snapshot

LOAD, PLAN = Path(__file__).with_name("demo_load.py"), Path(__file__).with_name("demo_plan.py")
PATIENCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The acknowledged records, and how many of them were read back."""

    acked: int
    failed: int
    found: int
    lost: int


@dataclass
class Stage:
    """Five brokers in three racks, each with two log dirs; a writer and a group of readers."""

    folder: Path
    cluster: ThreadedCluster = field(init=False)
    acks: list[tuple[float, int]] = field(default_factory=list)
    """When so many records had been acknowledged."""
    _ending: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Stage:
        logging.getLogger("restow").setLevel(logging.CRITICAL)
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        self.cluster = self._ending.enter_context(
            ThreadedCluster(
                5,
                racks=("a", "b", "c"),
                log_dirs=2,
                data=self.folder / "cluster",
                properties={"offsets.topic.num.partitions": "6", "offsets.topic.replication.factor": "2"},
                fsync=False,
            )
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    @property
    def bootstrap(self) -> str:
        """Return the address of one broker, which is enough to find the others."""
        return self.cluster.bootstrap.partition(",")[0]

    def snapshot(self) -> Snapshot:
        async def look() -> Snapshot:
            async with connected(ConnectionSettings(bootstrap=self.bootstrap, connect_timeout_s=60)) as admin:
                return await capture(admin, SystemClock())

        return asyncio.run(look())

    def create_topics(self) -> None:
        async def create() -> None:
            async with connected(ConnectionSettings(bootstrap=self.bootstrap, connect_timeout_s=60)) as admin:
                wanted = [
                    NewTopic(name=name, by_hand={at: replicas for at, (replicas, _) in enumerate(partitions)})
                    for name, partitions in TOPICS.items()
                ]
                for error in (await admin.create_topics(wanted)).values():
                    if error is not None:
                        raise SystemExit(f"demo: {error}")

        asyncio.run(create())

    def start_writer(self) -> None:
        """Start the writer; return when the topics have their first load."""
        self._writer = self._start("write", str(self.folder / "acked.json"))
        self._note(self._writer.stdout.readline())
        threading.Thread(target=self._listen, daemon=True).start()

    def start_readers(self) -> None:
        self._start("read")

    def stop_writer_and_read(self) -> Read:
        """End the load, and look for everything that was acknowledged."""
        self._writer.stdin.close()
        self._writer.wait(PATIENCE_S)
        noted = json.loads((self.folder / "acked.json").read_text())
        found = everything(self.bootstrap, PATIENCE_S)
        acked = set(noted["acked"])
        return Read(
            acked=len(acked), failed=noted["failed"], found=len(found & acked), lost=len(acked - found)
        )

    def _listen(self) -> None:
        for line in self._writer.stdout:
            self._note(line)

    def _note(self, line: str) -> None:
        said = json.loads(line)
        self.acks.append((said["at"], said["acked"]))

    def _start(self, *what: str) -> Any:
        kind, *rest = what
        process = subprocess.Popen(
            [sys.executable, str(LOAD), kind, self.bootstrap, *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._ending.callback(_end, process)
        return process


def _end(process: Any) -> None:
    """Close the process's input, which ends it; kill it if that does not help."""
    process.stdin.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()


class Compiling:
    """Compiles the planner's loops in the background, once per machine."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(PLAN)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def __enter__(self) -> Compiling:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def wait(self) -> None:
        """Wait until the loops are compiled."""
        self._process.wait(PATIENCE_S)
