"""What a plan changes by broker, and plans and journals that are read in a process of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

import restow
from restow.errors import InvalidDocument
from restow.model import TopicPartition
from restow.plan import write_plan
from restow.plan.explain.causes import causes_of
from restow.plan.explain.explain import explain
from restow.plan.explain.view import view_of
from restow.plan.files.kafka_json import there_and_back
from restow.plan.files.text import digest_of
from restow.plan.judge.compare import compare
from restow.plan.request.framing import ask
from restow.plan.request.request import PlanRequest
from restow.runtime.disk import SystemDisk
from restow.ui import large_files
from restow.ui.large_files import comparison, kafka_files, shown_plan
from restow.ui.moves import FiledMoves, ListedMoves, MoveFilter, shown_moves, write_moves
from restow.ui.plan_views import broker_changes
from restow.ui.run_books import RunBook
from restow.ui.watching import look_of
from tests.unit.execute.fake_admin import MB
from tests.unit.execute.stage import make_stage, plan_for
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from restow.ui.lists import Paged
    from restow.ui.moves import ShownMove

SKEWED = [((each * each) % 4, (each * each) % 4 + 1 + each % 2) for each in range(40)]
NOW = snapshot({"t": SKEWED, "u": [(0, 1, 2), (1, 2, 0), (5, 0, 1)]}, used={0: 1})


@pytest.fixture(params=[0, 10**9], ids=["in a process", "here"])
def where(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", request.param)


@pytest.mark.usefixtures("where")
def test_brokers_change_as_the_command_says(tmp_path: Path) -> None:
    plan = restow.plan(NOW, drain=[5], balance=True)
    write_plan(plan, tmp_path / "plan.json")
    found = shown_plan(tmp_path / "plan.json")
    assert broker_changes(found, look_of(NOW)) == view_of(plan, NOW).brokers
    assert [(each.partition, each.after, each.bytes_to_copy, each.reason) for each in found.moves] == [
        (each.partition, each.after, each.bytes_to_copy, each.reason) for each in plan.moves_in_order
    ]
    assert (found.digest, found.view) == (digest_of(plan), view_of(plan))
    assert kafka_files(tmp_path / "plan.json") == tuple(there_and_back(plan))


def test_moves_in_a_file_answer_like_moves_in_memory(tmp_path: Path) -> None:
    plan = restow.plan(NOW, drain=[5], balance=True)
    listed = ListedMoves(tuple(shown_moves(plan)))
    write_moves(listed, tmp_path / "moves.sqlite")
    filed = FiledMoves(tmp_path / "moves.sqlite", len(listed))
    assert list(filed) == list(listed)
    assert len(filed) == len(listed) > 10
    wanted = [MoveFilter(), MoveFilter(topic="T"), MoveFilter(broker=5), MoveFilter(topic="u", broker=0)]
    wanted += [MoveFilter(topic="%"), MoveFilter(topic="'; --"), MoveFilter(broker=55)]
    for number, each in product((0, 1, 2, 99), wanted):
        assert filed.page(number, 4, each) == _as_tuple(listed.page(number, 4, each))
    assert 0 < filed.page(1, 4, MoveFilter(broker=5)).total < len(listed)
    names = [TopicPartition("u", 2), TopicPartition("gone", 0)]
    assert filed.of(names) == listed.of(names) != {}


def _as_tuple(found: Paged[ShownMove]) -> Paged[ShownMove]:
    return replace(found, rows=tuple(found.rows))


def test_large_plan_is_read_once_and_again_after_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 0)
    first, second = (restow.plan(NOW, drain=[each]) for each in (4, 5))
    path = tmp_path / "plan.json"
    write_plan(first, path)
    assert list(shown_plan(path).moves) == list(shown_moves(first))
    reads = Mock(wraps=large_files._in_a_process)
    monkeypatch.setattr(large_files, "_in_a_process", reads)
    assert shown_plan(path).digest == digest_of(first)
    assert reads.call_count == 0
    kept = [path.with_name(name) for name in ("shown.json", "moves.sqlite")]
    for number, damaged in enumerate(kept, 1):
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
        assert list(shown_plan(path).moves) == list(shown_moves(first))
        assert reads.call_count == number
    write_plan(second, path)
    assert list(shown_plan(path).moves) == list(shown_moves(second))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["moves.sqlite", "plan.json", "shown.json"]


def test_large_plan_is_shown_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 0)
    monkeypatch.setattr(large_files.os, "access", lambda *_: False)
    plan = restow.plan(NOW, drain=[4])
    write_plan(plan, tmp_path / "plan.json")
    assert list(shown_plan(tmp_path / "plan.json").moves) == list(shown_moves(plan))
    assert [each.name for each in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.usefixtures("where")
def test_plans_are_compared_and_damage_is_said(tmp_path: Path) -> None:
    plans = [restow.plan(NOW, drain=[each]) for each in (4, 5)]
    for number, plan in enumerate(plans):
        write_plan(plan, tmp_path / f"{number}.json")
    assert comparison(tmp_path / "0.json", tmp_path / "1.json") == compare(*plans)
    (tmp_path / "bad.json").write_text('{"restow_plan": 1, "mo')
    with pytest.raises(InvalidDocument, match=r"bad\.json"):
        shown_plan(tmp_path / "bad.json")


@pytest.mark.usefixtures("where")
def test_journal_begins_the_same_wherever_it_is_read(tmp_path: Path) -> None:
    stage = make_stage(tmp_path)
    stage.execute(plan_for(stage, [(5, 6), (1, 2), (4, 1), (2, 3)]))
    [path] = tmp_path.rglob("journal.jsonl")
    book = RunBook(path.parent.name, path.parent, tmp_path / "kept")
    assert book.refresh(SystemDisk())
    assert (book.wrong, book.moves, book.arrived, book.outcome) == ("", 2, 2, "done")
    sizes = [size for _, size in book.arrived_bytes]
    assert sizes == [200 * MB, 300 * MB], "a move of two steps has copied half of its bytes after the first"
    path.write_bytes(path.read_bytes().replace(b'"began"', b'"begam"', 1))
    damaged = RunBook(path.parent.name, path.parent, tmp_path / "kept")
    damaged.refresh(SystemDisk())
    assert "this is not what was written" in damaged.wrong


def test_heaviest_replicas_are_named_of_brokers_above_their_band() -> None:
    asked = ask(NOW, None, PlanRequest(balance=True))
    nothing = restow.model.Plan(cluster_id=NOW.cluster_id, created_ms=0, moves=())
    told = explain(NOW, None, nothing, asked.request, asked)
    assert {each.ratio > 1 for each in told.unmet} == {True, False}
    for unmet, causes in causes_of(asked, told.unmet, most=3):
        if unmet.ratio < 1:
            assert causes == []
            continue
        if unmet.goal != "disk":
            continue
        here = sorted(
            (each.own_sizes[unmet.broker] for each in NOW.partitions if unmet.broker in each.replicas),
            reverse=True,
        )
        assert [each.amount for each in causes] == here[:3]
        assert all(each.share == pytest.approx(each.amount * unmet.ratio / sum(here)) for each in causes)
