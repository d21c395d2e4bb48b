"""Values that show themselves in notebooks and as DataFrames."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from restow.execute import Ending, RunOutcome
from restow.model import (
    Check,
    CheckOutcome,
    Copy,
    Left,
    LiveBroker,
    Move,
    Partition,
    Plan,
    Snapshot,
    Topic,
    TopicPartition,
    Verdict,
)

HOSTILE = "<script>alert(1)</script>"
SNAPSHOT = Snapshot(
    cluster_id=HOSTILE,
    taken_ms=0,
    controller=None,
    brokers=(LiveBroker(id=1, host="h", port=1, rack=HOSTILE), LiveBroker(id=2, host="h", port=2)),
    topics=(
        Topic(
            name="orders",
            partitions=(Partition(0, (1, 2), (1,), 1, copies=(Copy(1, "/a", 500, 0, False),)),),
        ),
    ),
)
MOVE = Move(
    partition=TopicPartition(HOSTILE, 0), before=(1, 2), after=(2, 3), size_bytes=2000, reason=HOSTILE
)
PLAN = Plan(
    cluster_id="c",
    created_ms=0,
    moves=(MOVE,),
    title=HOSTILE,
    leaves=(Left(partition=TopicPartition("t", 1), why=HOSTILE),),
)
VERDICT = Verdict(
    subject=HOSTILE,
    checks=(Check(name=HOSTILE, outcome=CheckOutcome.FAILS, evidence=HOSTILE, advice="a & b"),),
)
OUTCOME = RunOutcome(ending=Ending.STUCK, reason=HOSTILE, dropped={TopicPartition("t", 1): HOSTILE})


@pytest.mark.parametrize("value", [SNAPSHOT, PLAN, VERDICT, OUTCOME], ids=lambda value: type(value).__name__)
def test_html_is_well_formed_and_escapes_every_name(value: Snapshot | Plan | Verdict | RunOutcome) -> None:
    shown = value._repr_html_()
    assert "<script" not in shown
    texts = "".join(ET.fromstring(f"<div>{shown}</div>").itertext())  # noqa: S314  (our own)
    assert HOSTILE in texts


def test_snapshot_html_shows_the_bytes_of_a_silent_broker_as_unknown() -> None:
    shown = replace(SNAPSHOT, unanswered=(2,))._repr_html_()
    assert ">500 B<" in shown
    assert shown.count(">?<") == 1
    assert ">0 B<" not in shown


def test_plan_html_draws_bytes_before_and_after() -> None:
    root = ET.fromstring(f"<div>{PLAN._repr_html_()}</div>")  # noqa: S314  (our own)
    svg = "{http://www.w3.org/2000/svg}"
    widths = [rect.get("width") for rect in root.iter(f"{svg}rect")]
    assert widths == ["514.0", "0.0", "514.0", "514.0", "0.0", "514.0"]


def test_long_plan_shows_its_first_moves_and_counts_the_rest() -> None:
    moves = tuple(
        Move(partition=TopicPartition("t", number), before=(1,), after=(2,)) for number in range(1000)
    )
    shown = Plan(cluster_id="c", created_ms=0, moves=moves)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "and 980 more" in shown


def test_data_frames_have_a_row_per_replica_and_per_move() -> None:
    replicas = SNAPSHOT.to_pandas()
    assert replicas["broker"].tolist() == [1, 2]
    assert replicas["in_sync"].tolist() == [True, False]
    assert replicas["size_bytes"].dropna().tolist() == [500]
    moves = PLAN.to_pandas()
    assert moves.loc[0, ["adding", "removing", "bytes_to_copy"]].tolist() == [(3,), (1,), 2000]


def test_data_frames_name_the_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        PLAN.to_pandas()
