"""What the pages show, as JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restow.client import GroupLag
    from restow.model import Partition, TopicPartition
    from restow.ui.jobs import CommandJob
    from restow.ui.lake import LakeLook
    from restow.ui.plan_store import StoredPlan
    from restow.ui.run_books import RunBook, RunBooks
    from restow.ui.sums import BrokerSum, TopicSum
    from restow.ui.watching import ClusterLook


def cluster_document(look: ClusterLook) -> dict[str, Any]:
    """Return the cluster in numbers, with its brokers."""
    sums, snapshot = look.sums, look.snapshot
    known: dict[str, Any] = {}
    if sums is not None and snapshot is not None:
        known = {
            "cluster_id": snapshot.cluster_id,
            "taken_ms": snapshot.taken_ms,
            "controller": snapshot.controller,
            "topics": len(snapshot.topics),
            "partitions": sums.partitions,
            "size_bytes": sums.size_bytes,
            "under_replicated": sums.under_replicated,
            "offline": sums.offline,
            "moving": sums.moving,
            "not_preferred": sums.not_preferred,
            "brokers": [broker_document(each) for each in sums.brokers],
            "out_of_band": []
            if look.bands is None
            else [
                {"broker": each.broker, "goal": each.goal, "of_its_share": each.ratio}
                for each in look.bands.unmet
            ],
            "causes": [
                {
                    "broker": each.broker,
                    "goal": each.goal,
                    "replicas": [{**asdict(cause), "partition": str(cause.partition)} for cause in causes],
                }
                for each, causes in look.causes
            ],
        }
    away = look.away_since_ms is not None
    return {"away": away, "away_since_ms": look.away_since_ms, "why_away": look.why_away, **known}


def broker_document(broker: BrokerSum) -> dict[str, Any]:
    """Return one broker."""
    return {
        **asdict(broker),
        "rack": broker.rack or None,
        "state": broker.state,
        "throttles": dict(broker.throttles),
    }


def topic_document(topic: TopicSum) -> dict[str, Any]:
    """Return one topic in numbers."""
    return asdict(topic)


def partition_document(name: TopicPartition, partition: Partition) -> dict[str, Any]:
    """Return one partition."""
    return {
        "topic": name.topic,
        "partition": name.partition,
        "replicas": list(partition.replicas),
        "leader": partition.leader,
        "isr": list(partition.isr),
        "adding": list(partition.adding),
        "removing": list(partition.removing),
        "size_bytes": partition.size_bytes,
        "copies": [each._asdict() for each in partition.copies],
    }


def run_document(books: RunBooks, book: RunBook) -> dict[str, Any]:
    """Return one run without its moves."""
    return {
        "run": book.name,
        "active": books.is_active(book),
        "title": book.title,
        "digest": book.digest,
        "undo_of": book.undo_of,
        "by": book.who,
        "began_ms": book.began_ms,
        "ended_ms": book.ended_ms,
        "outcome": book.outcome,
        "reason": book.reason,
        "moves": book.moves,
        "arrived": book.arrived,
        "bytes_to_copy": book.bytes_to_copy,
        "predicted_seconds": None if book.prediction is None else book.prediction.seconds.document(),
        "took_seconds": book.took_s,
        "prediction_error": book.prediction_error,
        "wrong": book.wrong,
        "status": None if book.status is None else book.status.document(),
    }


def run_details(books: RunBooks, book: RunBook) -> dict[str, Any]:
    """Return one run with its moves and events."""
    moves, times = book.order, book.times
    return {
        **run_document(books, book),
        "moved": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "before": list(move.before),
                "after": list(move.after),
                "bytes_to_copy": move.bytes_to_copy,
                "reason": move.reason,
                "begun_ms": times[move.partition].begun_ms if move.partition in times else None,
                "ended_ms": times[move.partition].ended_ms if move.partition in times else None,
                "dropped": times[move.partition].dropped if move.partition in times else "",
            }
            for move in moves
        ],
        "events": [asdict(each) for each in book.events],
    }


def group_document(group: GroupLag) -> dict[str, Any]:
    """Return one group with its members and the partitions that it reads."""
    found = group.group
    return {
        "group": found.name,
        "protocol": found.protocol,
        "state": found.state,
        "assignor": found.assignor,
        "coordinator": group.coordinator,
        "lag": group.lag,
        "lag_ms": group.lag_ms,
        "error": group.error,
        "members": [
            {
                **asdict(each),
                "held": list(map(str, each.held)),
                "target": None if each.target is None else list(map(str, each.target)),
            }
            for each in found.members
        ],
        "partitions": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "committed": each.committed,
                "earliest": each.earliest,
                "latest": each.latest,
                "lag": each.lag,
                "lag_ms": each.lag_ms,
                "member": None if each.member is None else each.member.id,
            }
            for each in group.partitions
        ],
    }


def lake_document(lake: LakeLook) -> dict[str, Any]:
    """Return what the lake says: bytes per second by hour of the week, and forecasts."""
    findings = lake.findings
    return {
        "wrong": list(lake.wrong),
        "week": {} if findings is None else {name: list(hours) for name, hours in findings.week.items()},
        "forecast": [] if findings is None else list(findings.forecast),
    }


def plan_line(stored: StoredPlan) -> dict[str, Any]:
    """Return what is known of a plan without reading it."""
    return {
        "plan": stored.id,
        "title": stored.title,
        "at_ms": stored.request.get("at_ms"),
        "by": stored.request.get("who", ""),
        "asked": stored.request.get("given", {}),
        "ready": stored.is_there,
        "rehearsals": [each.id for each in stored.rehearsals()],
    }


def job_document(job: CommandJob) -> dict[str, Any]:
    """Return what has become of a command: where its result is, or why there is none."""
    return {
        "job": job.id,
        "title": job.title,
        "by": job.who,
        "started_ms": job.started_ms,
        "done": job.is_over,
        "exit_code": job.code,
        "wrong": (job.said or job.outcome) if job.is_over and job.code else "",
        "run": job.run or None,
        "location": f"/api/v1/runs/{job.run}" if job.run else None if job.lasts else f"/api/v1{job.leads_to}",
    }
