"""Benchmark rows: every figure beside every peer that it can be compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import cluster
from benchmarks.contenders import KRAFT, OURS_APART, ZOOKEEPER

if TYPE_CHECKING:
    import pytest

    from benchmarks.contenders import Contender


def test_broker_processes_are_compared_with_both_peers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka runs one process per broker, in today's version and in the one with ZooKeeper."""
    worth = {OURS_APART.name: 2.0, KRAFT.name: 4.0, ZOOKEEPER.name: 8.0}

    def measured(contender: Contender, scale: cluster.Scale) -> dict[str, float]:
        return dict.fromkeys(cluster.promises(), worth.get(contender.name, 1.0))

    monkeypatch.setattr(cluster, "measure", measured)
    rows = [row for row in cluster.compared(cluster.QUICK) if row.name.endswith(", a process each")]
    found = {(row.name.removesuffix(", a process each"), row.peer_name): row.ratio for row in rows}
    assert found == {
        (name, peer): ratio
        for name in cluster.promises()
        for peer, ratio in ((KRAFT.name, 0.5), (ZOOKEEPER.name, 0.25))
    }


def test_promised_ratios_are_in_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "measure", lambda *_: dict.fromkeys(cluster.promises(), 1.0))
    rows = {(row.name, row.peer_name): row for row in cluster.compared(cluster.QUICK)}
    for peer in (KRAFT.name, ZOOKEEPER.name):
        assert rows["consume, 3 replicas, a process each", peer].promise == "≥ 1.2"
        assert rows["consume, 3 replicas, a process each", peer].met is False
        assert rows["consume, 3 replicas", peer].met is True
        assert rows["start to first ack", peer].promise == "≤ 0.1, ≤ 0.6 s"
        assert rows["memory, idle", peer].promise == "≤ 0.167, ≤ 60 MB"
    assert rows[cluster.TRANSACTIONS, KRAFT.name].promise == "≥ 1"
    assert rows[cluster.TRANSACTIONS, ZOOKEEPER.name].promise == "–"
