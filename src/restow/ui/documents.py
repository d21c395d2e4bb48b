"""What the pages show, as JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restow.model import Partition, TopicPartition
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
        "title": book.plan.title if book.plan is not None else "",
        "digest": book.digest,
        "undo_of": book.undo_of,
        "by": book.who,
        "began_ms": book.began_ms,
        "ended_ms": book.ended_ms,
        "outcome": book.outcome,
        "reason": book.reason,
        "moves": book.moves,
        "arrived": book.arrived,
        "bytes_to_copy": 0 if book.plan is None else book.plan.bytes_to_copy,
        "wrong": book.wrong,
        "status": None if book.status is None else book.status.document(),
    }


def run_details(books: RunBooks, book: RunBook) -> dict[str, Any]:
    """Return one run with its moves and events."""
    moves = () if book.plan is None else book.plan.moves_in_order
    times = book.times
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
