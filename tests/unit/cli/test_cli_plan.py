"""`restow plan …` from snapshot files to plan files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from restow.cli.app import run
from restow.model import Copy, Limits, LiveBroker, Partition, Snapshot, Topic
from restow.plan import planning
from restow.plan.files.text import loads
from restow.plan.planning import make_plan
from restow.plan.request.request import RequestedLimits, settled
from restow.snapshot.text import dumps


def write_snapshot(path: Path, count: int) -> str:
    """Write a cluster with four brokers, the last of them empty, and return the path of the file."""
    partitions = tuple(
        Partition(
            number=number,
            replicas=(number % 3, (number + 1) % 3),
            isr=(number % 3, (number + 1) % 3),
            leader=number % 3,
            copies=tuple(
                Copy(broker=broker % 3, log_dir="/d", size_bytes=1000) for broker in (number, number + 1)
            ),
        )
        for number in range(count)
    )
    brokers = tuple(LiveBroker(id=broker, host="h", port=1) for broker in range(4))
    there = Snapshot(
        cluster_id="c",
        taken_ms=5,
        controller=0,
        brokers=brokers,
        topics=(Topic(name="orders", partitions=partitions),),
    )
    path.write_text(dumps(there), encoding="utf-8")
    return str(path)


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    return write_snapshot(tmp_path / "now.json", 24)


def test_add_brokers_gives_new_brokers_their_share(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "plan.html"
    code = run(
        ["plan", "add-brokers", "3", "--snapshot", snapshot, "-o", str(plan), "--html", str(page), "--json"]
    )
    assert code == 0
    told = json.loads(capsys.readouterr().out)
    made = loads(plan.read_text(encoding="utf-8"))
    assert told["moves"] == len(made.moves) > 0
    assert {broker for move in made.moves for broker in move.adding} == {3}
    assert "<svg" in page.read_text(encoding="utf-8")


def test_drain_empties_a_broker_and_compare_shows_two_plans(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    assert run(["plan", "drain", "0", "--snapshot", snapshot, "-o", first]) == 0
    assert run(["plan", "replace", "0:3", "--snapshot", snapshot, "-o", second]) == 0
    assert "16 partitions" in capsys.readouterr().out
    assert run(["plan", "compare", first, second, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["moves"] == [16, 16]
    assert told["same_start"] is True


def test_several_requests_make_one_plan(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    targets = [
        "--balance",
        "--rf",
        "1",
        "--topics",
        "*",
        "--disks",
        "--exclude-partitions",
        "orders-1,orders-4",
    ]
    given = ["plan", "drain", "0", *targets, "--snapshot", snapshot, "-o", str(path), "--json"]
    assert run([*given, "--partial"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["title"] == "balance; disks; drain 0; replication factor 1 for *"
    moves = loads(path.read_text(encoding="utf-8")).moves
    assert len(moves) == 22
    assert all(len(move.after) == 1 and move.after != (0,) for move in moves)
    assert not {move.partition.partition for move in moves} & {1, 4}
    assert {move.after[0] for move in moves} == {1, 2, 3}


def test_plan_has_the_limits_and_its_waves_keep_them(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    limits = ["--moves-in", "3", "--moves-out", "2", "--extra-copies", "2", "--fill", "0.7"]
    assert run(["plan", "replace", "0:3", *limits, "--snapshot", snapshot, "-o", str(path)]) == 0
    plan = loads(path.read_text(encoding="utf-8"))
    assert plan.limits == Limits(moves_in=3, moves_out=2, extra_copies=2, fill=0.7)
    assert [len(wave) for wave in plan.waves] == [3, 3, 3, 3, 3, 1]
    assert run(["show", str(path)]) == 0
    told = "up to 3 in and 2 out per broker at a time, 2 extra copies, log dirs 70% full"
    assert told in capsys.readouterr().out


def test_plan_raises_default_moves_in_for_small_replicas(snapshot: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert run(["plan", "replace", "0:3", "--moves-out", "7", "--snapshot", snapshot, "-o", str(path)]) == 0
    plan = loads(path.read_text(encoding="utf-8"))
    assert plan.limits == settled(RequestedLimits(moves_out=7), plan.moves)
    assert plan.limits.moves_in > Limits().moves_in


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["drain", "9"], "unknown brokers 9"),
        (["drain", "0", "--exclude-brokers", "0"], "to be emptied and to be left alone"),
        (["drain", "0", "--exclude-partitions", "orders"], "is not TOPIC-NUMBER"),
        (["change-rf", "2", "--topics", "*", "--rf", "3"], "given twice"),
        (["change-rf", "1"], "say which topics are to have 1 replica,"),
        (["drain", "0", "--rf", "1"], "--topics '*' means all but Kafka's internal ones"),
        (["drain", "0", "--cordon", "1,2,3"], "cordon fewer brokers"),
        (["add-brokers", "3", "--cordon", "3"], "to receive replicas and to get none"),
        (["demote", "9"], "unknown brokers 9"),
        (["replace", "0:3", "--replace", "0:2"], "replaced already"),
        (["drain", "x"], "not a list of broker ids"),
        (["replace", "3"], "not OLD:NEW"),
        (["balance", "--band", "wide"], "not a share"),
        (["balance", "--band", "speed=0.1"], "there is no goal 'speed'"),
        (["relieve", "disk=0.5"], "above 1"),
        (["change-rf", "9", "--topics", "*"], "only 4 brokers"),
        (["drain", "0", "--moves-in", "0"], "with less than 1 nothing can move"),
        (["drain", "0", "--fill", "1.5"], "a share above 0, up to 1"),
    ],
)
def test_bad_requests_are_refused(
    snapshot: str, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *arguments, "--snapshot", snapshot]) == 2
    assert says in capsys.readouterr().err


def test_plan_needs_a_cluster_or_a_snapshot(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RESTOW_BOOTSTRAP_SERVER", raising=False)
    assert run(["plan", "balance"]) == 2
    assert "--bootstrap-server HOST:PORT, or --snapshot FILE" in capsys.readouterr().err


def test_bound_is_no_multiple_where_the_plan_does_less_than_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = write_snapshot(tmp_path / "reached.json", 24)
    beyond = str(tmp_path / "beyond.json")
    huge = Path(reached).read_text(encoding="utf-8").replace("1000", "9000", 1)
    Path(beyond).write_text(huge, encoding="utf-8")
    assert run(["plan", "balance", "--snapshot", reached, "-o", str(tmp_path / "a.json")]) == 0
    assert "have to be; this is 1.0" in capsys.readouterr().out
    assert run(["plan", "balance", "--snapshot", beyond, "-o", str(tmp_path / "b.json")]) == 0
    said = capsys.readouterr().out
    assert "disk of broker" in said
    assert "times that" not in said


def test_incomplete_plan_is_named_and_written_only_with_partial(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    given = [
        "plan",
        "drain",
        "0",
        "--exclude-partitions",
        "orders-3",
        "--snapshot",
        snapshot,
        "-o",
        str(path),
    ]
    assert run(given) == 3
    said = capsys.readouterr().out
    assert "The plan is incomplete: 1 partition cannot be done." in said
    assert "orders-3: stays on broker 0: it is excluded (--exclude-partitions)" in said
    assert "copies in under 1 s at 10.0 MB/s per broker" in said
    assert not path.exists()
    assert run([*given, "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] is False
    assert [each["partition"] for each in told["leaves"]] == ["orders-3"]
    assert run([*given, "--partial"]) == 0
    assert [str(each.partition) for each in loads(path.read_text(encoding="utf-8")).leaves] == ["orders-3"]
    capsys.readouterr()
    nowhere = ["execute", str(path), "--throttle", "none", "--yes", "-b", "127.0.0.1:1"]
    assert run(nowhere) == 2
    assert "it leaves 1 partition behind (orders-3;" in capsys.readouterr().err


def test_verify_fails_for_partitions_that_the_plan_left_behind(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "plan.json")
    assert run(["plan", "drain", "3", "--snapshot", snapshot, "-o", path]) == 0
    assert run(["verify", path, "--snapshot", snapshot, "--journal", str(tmp_path)]) == 0
    assert "broker 3 is empty" in capsys.readouterr().out
    assert run(["plan", "drain", "0", "--snapshot", snapshot, "-o", path]) == 0
    capsys.readouterr()
    assert run(["verify", path, "--snapshot", snapshot, "--journal", str(tmp_path), "--json"]) == 1
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["broker 0 is empty"]["outcome"] == "fails"
    assert "orders-0 on broker 0" in checks["broker 0 is empty"]["evidence"]


def test_plan_names_cordoned_brokers_and_gives_them_no_replicas(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    given = ["plan", "drain", "0", "--cordon", "3", "--snapshot", snapshot, "-o", str(path)]
    assert run(given) == 0
    assert "broker 3 is cordoned: it gets no replicas" in capsys.readouterr().out
    plan = loads(path.read_text(encoding="utf-8"))
    assert len(plan.moves) == 16
    assert not any(3 in move.after for move in plan.moves)


@pytest.mark.full
def test_plan_is_the_same_while_the_search_is_being_compiled(tmp_path: Path) -> None:
    """The search time starts only after the compilation, which takes longer than --seconds.

    The search for a smaller cluster is not compiled.
    """
    snapshot = write_snapshot(tmp_path / "now.json", 600)
    command = [sys.executable, "-m", "restow", "plan", "balance", "--snapshot", snapshot, "--seconds", "10"]
    plans = []
    for number in range(2):
        plan = tmp_path / f"plan-{number}.json"
        subprocess.run(
            [*command, "-o", str(plan)],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "compiled")},
            check=True,
            capture_output=True,
        )
        plans.append(plan.read_bytes())
    assert plans[0] == plans[1]
    assert any((tmp_path / "compiled").rglob("*.nbc"))


def test_former_name_of_create_partitions_works_but_is_not_shown(invoke: Any) -> None:
    assert invoke("topics", "expand", "--help").exit_code == 0
    shown = invoke("topics", "--help").output
    assert "create-partitions" in shown
    assert "expand" not in shown


def test_ctrl_c_ends_the_search_with_the_best_plan_so_far(
    snapshot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any, told_to_stop: Any, **options: Any) -> Any:
        assert not told_to_stop()
        signal.raise_signal(signal.SIGINT)
        assert told_to_stop()
        return make_plan(*arguments, told_to_stop=told_to_stop, **options)

    monkeypatch.setattr(planning, "make_plan", interrupted)
    plan, before = tmp_path / "plan.json", signal.getsignal(signal.SIGINT)
    assert run(["plan", "drain", "0", "--snapshot", snapshot, "-o", str(plan)]) == 0
    assert "interrupted: this is the best plan found so far" in capsys.readouterr().err
    assert len(loads(plan.read_text(encoding="utf-8")).moves) == 16
    assert signal.getsignal(signal.SIGINT) is before
