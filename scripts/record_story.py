"""Record the story that `restow ui --demo` shows: src/restow/ui/story.zip.

    .venv/bin/python scripts/record_story.py [FILE]

Everything in it has really happened, on an embedded cluster, through the pages' own API: a plan, two
rehearsals, a run whose throttle is changed and which is paused, a drain and its undo, groups of both
protocols at work. Only the hours of the week and the forecast are made up: the cluster lives for minutes.
"""

from __future__ import annotations

import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer

import restow
from restow.client import NewTopic
from restow.cluster.threaded import ThreadedCluster
from restow.execute.journal.journal import Journal, parse_entries
from restow.model.load import BYTES_IN, BYTES_OUT, LoadModel, Resource
from restow.model.load_text import dumps
from restow.runtime.disk import SystemDisk
from restow.ui.recorded import GROUPS, LAKE, LOAD, SNAPSHOT, STATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.model import Snapshot

TARGET = Path(__file__).parents[1] / "src" / "restow" / "ui" / "story.zip"
RACKS = ("a", "b", "c")
TOPICS = {
    "orders": (18, 3, 30_000),
    "payments": (12, 3, 14_000),
    "clicks": (16, 2, 22_000),
    "audit": (4, 3, 4_000),
}
"""Partitions, replicas, and kilobytes of one replica of the whole topic."""
RECORD = os.urandom(8_000)
DATA = Path("/tmp/kafka")  # noqa: S108  (it must not be there yet)
WHO, HOST = "ada", "ops-1"
PATIENCE_S = 300


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    os.environ["LOGNAME"] = WHO
    with tempfile.TemporaryDirectory(prefix="restow-story-") as name, ExitStack() as ending:
        folder = Path(name)
        data = ending.enter_context(fixed_folder())
        cluster = ending.enter_context(
            ThreadedCluster(
                6,
                racks=RACKS,
                log_dirs=2,
                data=data,
                properties={"offsets.topic.num.partitions": "6", "offsets.topic.replication.factor": "3"},
                fsync=False,
            )
        )
        fill(cluster.bootstrap)
        for reader in readers(cluster.bootstrap):
            ending.callback(reader)
        with restow.connect(cluster.bootstrap) as kafka:
            while "__consumer_offsets" not in kafka.snapshot().topic:
                time.sleep(0.5)
            load = made_up_load(kafka.snapshot())
        (folder / LOAD).write_text(dumps(load), encoding="utf-8")
        pages = ending.enter_context(Pages(cluster.bootstrap, folder))
        play(pages)
        record(pages, cluster.bootstrap, folder, load)
        pack(folder, target)


@contextmanager
def fixed_folder() -> Iterator[Path]:
    """Return a folder whose name says nothing of this machine: log dirs are in plans, which have digests."""
    DATA.mkdir()
    try:
        yield DATA
    finally:
        shutil.rmtree(DATA)


def fill(bootstrap: str) -> None:
    """Create topics whose replicas are mostly on the first three brokers, and write to them."""
    hands: dict[str, dict[int, tuple[int, ...]]] = {}
    for topic, (partitions, factor, _) in TOPICS.items():
        homes = [(0, 1, 2), (1, 2, 0), (0, 2, 1), (0, 1, 5), (3, 1, 2)]
        hands[topic] = {at: homes[at % len(homes)][:factor] for at in range(partitions)}
    with restow.connect(bootstrap) as kafka:
        kafka.ask(
            lambda admin: admin.create_topics([NewTopic(name=each, by_hand=hands[each]) for each in TOPICS])
        )
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 1, "linger.ms": 20})
    for topic, (partitions, _, kilobytes) in TOPICS.items():
        for partition in range(partitions):
            share = weight(topic, partition) / sum(weight(topic, each) for each in range(partitions))
            for _ in range(max(1, round(share * kilobytes / 8))):
                producer.produce(topic, RECORD, partition=partition)
    producer.flush()


def weight(topic: str, partition: int) -> float:
    """Return how much of its topic a partition has: a few are heavy."""
    return 1.0 + 3.0 * ((partition * 7 + len(topic)) % 5 == 0) + (partition % 3) / 3


def readers(bootstrap: str) -> Iterator[Any]:
    """Start a classic group and one of the protocol `consumer`; yield what ends them."""
    stop = threading.Event()

    def classic(number: int) -> None:
        consumer = KafkaConsumer(
            "orders",
            "payments",
            bootstrap_servers=bootstrap,
            group_id="billing",
            client_id=f"billing-{number}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=4,
            fetch_max_bytes=400_000,
        )
        with closing(consumer):
            while not stop.is_set():
                if consumer.poll(timeout_ms=500):
                    consumer.commit()
                stop.wait(0.4)

    def modern(number: int) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "recommendations",
                "client.id": f"recommendations-{number}",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["clicks"])
        while not stop.is_set():
            if consumer.consume(1, timeout=0.5):
                consumer.commit(asynchronous=False)
            stop.wait(0.5)
        consumer.close()

    threads = [threading.Thread(target=kind, args=(each,)) for kind in (classic, modern) for each in (1, 2)]
    for thread in threads:
        thread.start()

    def end() -> None:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)

    yield end


class Pages:
    """`restow ui` on the cluster, called through its API."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "restow", "ui", "-b", bootstrap, "--port", "0", "--json"]
        flags = ["--journal", str(folder / STATE), "--load", str(folder / LOAD)]
        self._process = subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True)
        told = json.loads(self._process.stdout.readline() if self._process.stdout else "")
        self._address, self._token = told["address"], told["tokens"]["operator"]
        self.until(lambda: "cluster_id" in self.ask("/cluster"))

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def ask(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self._address}/api/v1{path}", data, headers)  # noqa: S310
        with urllib.request.urlopen(request) as answer:  # noqa: S310  (our own server)
            return json.load(answer)

    def done(self, path: str, body: object) -> dict[str, Any]:
        """Begin a command, and return what has become of it."""
        job = self.ask(path, body)["job"]
        self.until(lambda: self.ask(f"/jobs/{job}")["done"])
        told: dict[str, Any] = self.ask(f"/jobs/{job}")
        if told["exit_code"]:
            raise SystemExit(told["wrong"])
        return told

    def begun(self, path: str, body: object) -> str:
        """Begin a run, and return its name."""
        job = self.ask(path, body)["job"]
        self.until(lambda: self.ask(f"/jobs/{job}")["run"] or self.ask(f"/jobs/{job}")["wrong"])
        told = self.ask(f"/jobs/{job}")
        if told["run"] is None:
            raise SystemExit(told["wrong"])
        return str(told["run"])

    def until(self, happened: Any) -> None:
        end = time.monotonic() + PATIENCE_S
        while not happened():
            if time.monotonic() > end:
                raise SystemExit("record_story: this takes too long")
            time.sleep(0.3)

    def arrived(self, run: str) -> float:
        status = self.ask(f"/runs/{run}")["status"]
        return 0.0 if status is None else float(status["done_bytes"] / max(status["to_do_bytes"], 1))


def play(pages: Pages) -> None:
    cluster = pages.ask("/cluster")["cluster_id"]
    plan = pages.done("/plans", {"kind": "balance"})["job"]
    faults = ["broker 1 dies at 40%", "broker 1 comes back at 30s"]
    for options in ({"throttle": "3MB/s"}, {"throttle": "5MB/s", "what_if": faults}):
        pages.done(f"/plans/{plan}/rehearsals", {"options": options})
    run = pages.begun(f"/plans/{plan}/runs", {"cluster": cluster, "options": {"throttle": "3MB/s"}})
    pages.until(lambda: pages.arrived(run) > 0.25)
    pages.ask(f"/runs/{run}/control", {"action": "pause"})
    time.sleep(4)
    pages.ask(f"/runs/{run}/control", {"action": "go on", "throttle": "5MB/s"})
    pages.until(lambda: pages.ask(f"/runs/{run}")["outcome"])
    drain = pages.done("/plans", {"kind": "drain", "options": {"brokers": "5"}})["job"]
    pages.done(f"/plans/{drain}/rehearsals", {"options": {"throttle": "20MB/s"}})
    drained = pages.begun(f"/plans/{drain}/runs", {"cluster": cluster, "options": {"throttle": "20MB/s"}})
    pages.until(lambda: pages.ask(f"/runs/{drained}")["outcome"])
    back = pages.begun(f"/runs/{drained}/undo", {"throttle": "20MB/s"})
    pages.until(lambda: pages.ask(f"/runs/{back}")["outcome"])
    more = pages.done("/plans", {"kind": "change-rf", "options": {"topics": "clicks", "replicas": "3"}})[
        "job"
    ]
    pages.done(f"/plans/{more}/rehearsals", {"options": {"throttle": "10MB/s"}})


def record(pages: Pages, bootstrap: str, folder: Path, load: LoadModel) -> None:
    time.sleep(8)  # the pages look at the cluster once more
    (folder / GROUPS).write_text(json.dumps(pages.ask("/groups")), encoding="utf-8")
    with restow.connect(bootstrap) as kafka:
        snapshot = kafka.snapshot()
    restow.write_snapshot(snapshot, folder / SNAPSHOT)
    lake = {"week": made_up_week(load), "forecast": made_up_forecast(snapshot)}
    (folder / LAKE).write_text(json.dumps(lake), encoding="utf-8")


def day_and_week(hour: int) -> float:
    """Return how busy an hour is: days more than nights, and weekends less."""
    day, of_day = divmod(hour, 24)
    busy = 1.0 + 0.75 * math.sin((of_day - 7) / 24 * 2 * math.pi) + 0.2 * math.sin((of_day - 4) / 6 * math.pi)
    return busy * (0.55 if day >= 5 else 1.0)


def made_up_load(snapshot: Snapshot) -> LoadModel:
    names = snapshot.names
    kilobytes = {topic: kilobytes for topic, (_, _, kilobytes) in TOPICS.items()}
    comes = np.array([weight(*each) * kilobytes.get(each.topic, 10) * 1.5 for each in names])
    hours = {topic: np.array([day_and_week(hour) for hour in range(168)]) for topic in TOPICS}
    factors = np.array([len(each.replicas) for each in snapshot.partitions])
    goes = comes * (factors - 1 + 1.6)
    return LoadModel(
        cluster_id=snapshot.cluster_id,
        made_ms=snapshot.taken_ms,
        partitions=tuple(names),
        resources={
            BYTES_IN: Resource(leading=comes, following=comes, hours=hours),
            BYTES_OUT: Resource(leading=goes, following=np.zeros_like(goes), hours=hours),
        },
    )


def made_up_week(load: LoadModel) -> dict[str, list[float]]:
    return {
        name: [float(each.leading.sum()) * day_and_week(hour) for hour in range(168)]
        for name, each in load.resources.items()
    }


def made_up_forecast(snapshot: Snapshot) -> list[dict[str, Any]]:
    rows = []
    for broker in snapshot.brokers:
        for log_dir in broker.log_dirs:
            total, usable = log_dir.total_bytes or 1, log_dir.usable_bytes or 0
            now, limit, growth = total - usable, 0.9 * total, total * (0.004 + 0.002 * (broker.id % 4))
            days = [(limit - now) / (growth * each) for each in (1.0, 1.2, 0.8)]
            times = [snapshot.taken_ms + round(each * 86_400_000) for each in days]
            rows.append(
                {
                    "measure": "disk",
                    "broker": broker.id,
                    "log_dir": log_dir.path,
                    "now": now,
                    "limit": limit,
                    "growth": growth,
                    "error": growth / 10,
                    "hours": 168,
                    **dict(zip(("passes", "soonest", "latest"), times, strict=True)),
                    "last": snapshot.taken_ms,
                    "why": None,
                    "why_soonest": None,
                    "why_latest": None,
                }
            )
    return sorted(rows, key=lambda row: row["passes"])


def pack(folder: Path, target: Path) -> None:
    """Put the files into the archive, without the names of this machine."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as story:
        for name in (SNAPSHOT, LOAD, GROUPS, LAKE):
            story.writestr(_entry(name), cleaned((folder / name).read_text(encoding="utf-8"), folder))
        for path in sorted((folder / STATE).rglob("*")):
            if not path.is_file() or path.name in ("lock", "holder.json", "control.json"):
                continue
            where = str(path.relative_to(folder))
            if path.name == "journal.jsonl":
                rewrite(path, folder)
            story.writestr(_entry(where), cleaned(path.read_text(encoding="utf-8"), folder))
    print(f"{target}: {target.stat().st_size:,} bytes")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def cleaned(text: str, folder: Path) -> str:
    return text.replace(str(folder), "/var/lib/kafka").replace(
        f'"host": "{platform.node()}"', f'"host": "{HOST}"'
    )


def rewrite(path: Path, folder: Path) -> None:
    """Write a journal anew, because each of its lines has a checksum."""
    entries, _ = parse_entries(path.read_bytes(), str(path))
    path.unlink()

    class Then:
        at_ms = 0

        def now_ms(self) -> int:
            return self.at_ms

    clock = Then()
    journal = Journal(SystemDisk(), clock, str(path.parent))  # type: ignore[arg-type]
    for each in entries:
        clock.at_ms = each.at_ms
        journal.write(each.kind, **json.loads(cleaned(json.dumps(dict(each.facts)), folder)))
    journal.close()


if __name__ == "__main__":
    main()
