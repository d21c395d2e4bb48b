"""Sizes that only a dead broker knows are shown as unknown, not as 0 bytes."""

from __future__ import annotations

import io

from rich.console import Console

from restow.cli.plan.show_html import page_of
from restow.cli.plan.view import _amount_fields, _draw_amounts
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic
from restow.plan.explain.amounts import by_log_dir
from restow.plan.explain.explain import explain
from restow.plan.explain.view import view_of
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest

REQUEST = PlanRequest(balance=True)
SNAPSHOT = Snapshot(
    cluster_id="c",
    taken_ms=0,
    controller=None,
    brokers=tuple(
        LiveBroker(
            id=number,
            host="h",
            port=number,
            log_dirs=(LogDir(path="/d", total_bytes=10**9, usable_bytes=9 * 10**8),),
        )
        for number in (1, 2)
    ),
    topics=(
        Topic(
            name="t",
            partitions=(
                Partition(0, (1,), (1,), 1, copies=(Copy(1, "/d", 500, 0, False),)),
                Partition(1, (3,), (3,), None),
            ),
        ),
    ),
)
PLAN = propose(SNAPSHOT, None, REQUEST)


def test_amounts_of_a_dead_broker_with_the_only_replica_are_unknown() -> None:
    told = explain(SNAPSHOT, None, PLAN, REQUEST)
    for amounts in (told.brokers, by_log_dir(SNAPSHOT, ask(SNAPSHOT, None, REQUEST).arrays, PLAN.moves)):
        found = {each.name.partition(":")[0]: each.before_bytes for each in amounts}
        assert found == {"1": 500, "2": 0, "3": None}
    assert {each.name: each.after_bytes for each in told.racks}["down"] is None


def test_view_of_a_dead_broker_with_the_only_replica_has_no_size() -> None:
    sizes = {each.broker: each.before.size_bytes for each in view_of(PLAN, SNAPSHOT).brokers}
    assert sizes == {1: 500, 2: 0, 3: None}


def test_plan_is_drawn_with_a_question_mark_and_written_with_null() -> None:
    told = explain(SNAPSHOT, None, PLAN, REQUEST)
    console = Console(width=100, file=io.StringIO(), color_system=None)
    with console.capture() as captured:
        _draw_amounts(console, "broker", told.brokers)
    (dead,) = [line for line in captured.get().splitlines() if line.strip().startswith("3")]
    assert dead.count("?") == 2
    assert "0 B" not in dead
    assert [_amount_fields(each)["bytes"] for each in told.brokers][2] == [None, None]
    assert "? → ?" in page_of(PLAN, view_of(PLAN, SNAPSHOT), told)
