"""Plan files on the command line: digests that approve them, Kafka's JSON, and plans rebased."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from shlex import split
from typing import TYPE_CHECKING

import pytest

from restow.cli.snapshot import source
from restow.model import Limits, Snapshot, TopicPartition
from restow.plan.files import text
from restow.plan.files.kafka_json import check_reassignment, parse_reassignment
from restow.plan.pin import Target, plan_from_targets
from restow.plan.schedule.schedule import Order, order_of
from restow.snapshot.text import dumps as snapshot_text
from tests.unit.plan.clusters import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.model import Move
    from tests.unit.cli.conftest import Invoke


EXECUTE = ("execute", "-b", "127.0.0.1:1", "--throttle", "none", "--yes")


def cluster(replicas: tuple[int, ...] = (1, 2), topic_id: str = "one") -> Snapshot:
    here = snapshot({"t": [replicas, (2, 3)]}, dirs=("/d", "/e"))
    return replace(here, topics=tuple(replace(each, id=topic_id) for each in here.topics))


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    """Return a plan that moves t-0 from broker 2 to 4, and t-1 to another log dir."""
    targets = [
        Target(partition=TopicPartition("t", 0), replicas=(1, 4)),
        Target(partition=TopicPartition("t", 1), replicas=(2, 3), log_dirs=("any", "/e")),
    ]
    path = tmp_path / "plan.json"
    path.write_text(text.dumps(plan_from_targets(cluster(), targets, created_ms=7, title="a title")))
    return str(path)


def file_of(here: Snapshot, tmp_path: Path) -> str:
    path = tmp_path / "snapshot.json"
    path.write_text(snapshot_text(here))
    return str(path)


def digest_in(path: str) -> str:
    return str(json.loads(Path(path).read_text())["digest"])


def test_plan_and_show_print_the_digest_of_the_file(tmp_path: Path, invoke: Invoke) -> None:
    made = str(tmp_path / "made.json")
    told = invoke("plan", "drain", "3", "--snapshot", file_of(cluster(), tmp_path), "-o", made)
    assert told.exit_code == 0, told.output
    digest = digest_in(made)
    assert f"digest {digest}" in told.stdout
    assert f"restow execute {made} --digest {digest[:19]}" in told.stdout
    assert f"digest {digest}" in invoke("show", made).stdout
    assert json.loads(invoke("show", made, "--json").stdout)["digest"] == digest


@pytest.mark.parametrize(
    "command",
    [
        ("drain", "3"),
        ("drain", "3", "--exclude-partitions", "t-1", "--partial"),
        ("rebase", "{plan}"),
        ("rebase", "{plan}", "--partial"),
    ],
)
def test_printed_command_lacks_nothing_but_the_yes(
    plan_file: str, tmp_path: Path, invoke: Invoke, refused: Callable[..., str], command: tuple[str, ...]
) -> None:
    here = cluster(topic_id="two" if command == ("rebase", "{plan}", "--partial") else "one")
    given = [each.format(plan=plan_file) for each in command]
    made = str(tmp_path / "made.json")
    told = invoke("plan", *given, "--snapshot", file_of(here, tmp_path), "-o", made)
    assert told.exit_code == 0, told.output
    assert bool(text.loads(Path(made).read_text()).leaves) == ("--partial" in command)
    printed = next(line for line in told.stdout.splitlines() if line.startswith("  restow execute"))
    assert "there is no terminal to ask on: add --yes" in refused(*printed.split()[1:], "-b", "127.0.0.1:1")


@pytest.mark.parametrize("environment", [{}, {"RESTOW_BOOTSTRAP_SERVER": "127.0.0.1:1,127.0.0.1:2"}])
def test_printed_command_names_the_cluster_unless_the_environment_does(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    config = tmp_path / "my client.properties"
    config.write_text("")
    monkeypatch.setattr(source, "on_cluster", lambda *_: cluster())
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    where = ("-b", "127.0.0.1:1,127.0.0.1:2", "--command-config", str(config))
    told = invoke("plan", "drain", "1", *where, "-o", str(tmp_path / "made.json"))
    assert told.exit_code == 0, told.output
    printed = next(line for line in told.stdout.splitlines() if line.startswith("  restow execute"))
    assert split(printed)[7:] == list(where[2:] if environment else where)


@pytest.mark.parametrize("form", [str, lambda digest: digest[:19], lambda digest: digest[7:].upper()])
def test_show_takes_the_digest_of_the_plan_in_any_form(
    plan_file: str, invoke: Invoke, form: Callable[[str], str]
) -> None:
    told = invoke("show", plan_file, "--digest", form(digest_in(plan_file)))
    assert told.exit_code == 0, told.output


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        EXECUTE,
        ("verify", "-b", "127.0.0.1:1"),
        ("plan", "rebase", "-b", "127.0.0.1:1"),
    ],
)
def test_command_refuses_a_plan_of_another_digest(
    plan_file: str, refused: Callable[..., str], command: tuple[str, ...]
) -> None:
    said = refused(*command, plan_file, "--digest", "sha256:" + "0" * 64)
    assert "it is not the plan that was approved" in said
    assert digest_in(plan_file) in said


@pytest.mark.parametrize("digest", ["", "sha256:", "0123456789a", "sha512:" + "0" * 64, "g" * 12, "0" * 65])
def test_show_refuses_a_malformed_digest(plan_file: str, refused: Callable[..., str], digest: str) -> None:
    assert "is not a digest" in refused("show", plan_file, "--digest", digest)


@pytest.mark.parametrize(
    "command", [("show",), ("execute", "-b", "127.0.0.1:1", "--throttle", "none", "--yes")]
)
@pytest.mark.parametrize(
    ("old", "new"), [('"after": [1, 4]', '"after": [1, 5]'), ('"moves_in": 20', '"moves_in": 999')]
)
def test_command_refuses_a_plan_that_was_edited(
    plan_file: str, refused: Callable[..., str], command: tuple[str, ...], old: str, new: str, tmp_path: Path
) -> None:
    edited = tmp_path / "edited.json"
    edited.write_text(Path(plan_file).read_text().replace(old, new))
    assert "was changed after it was made" in refused(*command, str(edited))


def test_show_prints_the_verdict_of_the_judge(tmp_path: Path, invoke: Invoke) -> None:
    here = snapshot({"t": [(1, 2), (1, 2), (1, 2)]})
    wishes = [Target(partition=TopicPartition("t", number), replicas=(1, 3)) for number in range(3)]
    plan = plan_from_targets(here, wishes, created_ms=0)
    path = tmp_path / "plan.json"
    path.write_text(text.dumps(replace(plan, limits=Limits(moves_in=1))))
    assert "judge: nothing is broken" in invoke("show", str(path)).stdout
    whole = ("show", str(path), "--snapshot", file_of(here, tmp_path))
    assert "judge: broken: wave 1: moves in (3 to broker 3)" in invoke(*whole).stdout
    told = json.loads(invoke(*whole, "--json").stdout)["violations"]
    assert told == [{"rule": "moves in", "where": "wave 1", "what": "3 to broker 3"}]


def test_show_prints_a_plan_as_kafka_reads_it(plan_file: str, tmp_path: Path, invoke: Invoke) -> None:
    back = tmp_path / "back.json"
    told = invoke("show", plan_file, "--format", "kafka", "--rollback", str(back))
    assert told.exit_code == 0, told.output
    targets = parse_reassignment(told.stdout)
    check_reassignment(targets)
    assert targets == (
        Target(partition=TopicPartition("t", 0), replicas=(1, 4)),
        Target(partition=TopicPartition("t", 1), replicas=(2, 3), log_dirs=("any", "/e")),
    )
    assert parse_reassignment(back.read_text()) == (
        Target(partition=TopicPartition("t", 0), replicas=(1, 2)),
        Target(partition=TopicPartition("t", 1), replicas=(2, 3), log_dirs=("/d", "/d")),
    )


def test_show_writes_a_page_with_brokers_log_dirs_and_time(
    plan_file: str, tmp_path: Path, invoke: Invoke
) -> None:
    page = tmp_path / "plan.html"
    told = invoke("show", plan_file, "--html", str(page), "--throttle", "10MB/s")
    assert told.exit_code == 0, told.output
    found = page.read_text()
    assert "takes at least 1.7 min at 10.0 MB/s per broker" in found
    cells = re.findall("<td[^>]*>([^<]*)</td>", found)
    assert "broker 3|/e|1.0 GB|0 B" in "|".join(cells)
    assert "|4|0 → 1|0 → 0|1.0 GB|0 B|0 B|" in "|".join(cells)
    assert digest_in(plan_file) in found
    assert "<svg" in found


@pytest.mark.parametrize(
    ("throttle", "says"),
    [("10MB/s", "takes at least 1.7 min at 10.0 MB/s"), ("2GB/s", "copies in under 1 s at 2.0 GB/s")],
)
def test_show_rounds_no_time_to_nothing(plan_file: str, invoke: Invoke, throttle: str, says: str) -> None:
    assert f"{says} per broker" in invoke("show", plan_file, "--throttle", throttle).stdout


def test_plan_prints_the_same_kafka_json_as_place(tmp_path: Path, invoke: Invoke) -> None:
    target = tmp_path / "request.json"
    placed = invoke(
        *("place", "--brokers", "0-5", "--partitions", "2", "--replication-factor", "2", "--seed", "1"),
        *("--topic", "t", "--format", "kafka"),
    ).stdout
    target.write_text(placed)
    here = file_of(cluster(), tmp_path)
    assert invoke("plan", "from-json", str(target), "--snapshot", here, "--format", "kafka").stdout == placed


def test_from_json_refuses_a_cordoned_broker(tmp_path: Path, refused: Callable[..., str]) -> None:
    here = cluster()
    shut = tuple(replace(each, cordoned=True) for each in here.brokers[4].log_dirs)
    brokers = (*here.brokers[:4], replace(here.brokers[4], log_dirs=shut), *here.brokers[5:])
    moves, output = tmp_path / "moves.json", tmp_path / "plan.json"
    moves.write_text('{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 4]}]}')
    there = file_of(replace(here, brokers=brokers), tmp_path)
    said = refused("plan", "from-json", str(moves), "--snapshot", there, "-o", str(output))
    assert "t-0 is to have a new replica on broker 4, but all its log dirs are cordoned" in said
    assert not output.exists()


@pytest.mark.parametrize("command", ["from-json", "rebase"])
def test_plan_command_writes_no_plan_that_the_judge_finds_broken(
    command: str, plan_file: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order leaves out a step, so that a partition never gets its replicas."""
    monkeypatch.setattr("restow.plan.pin.order_of", without_the_first_step)
    moves, output = tmp_path / "moves.json", tmp_path / "new.json"
    moves.write_text(invoke("show", plan_file, "--format", "kafka").stdout)
    source = str(moves) if command == "from-json" else plan_file
    told = invoke("plan", command, source, "--snapshot", file_of(cluster(), tmp_path), "-o", str(output))
    assert told.exit_code == 1, told.output
    assert "the judge finds this plan broken" in told.stderr
    assert not output.exists()


def without_the_first_step(moves: Iterable[Move], here: Snapshot, limits: Limits) -> Order:
    order = order_of(moves, here, limits)
    return order._replace(waves=(order.waves[0][1:], *order.waves[1:]))


def test_plan_writes_rollback_json_beside_kafka_json(tmp_path: Path, invoke: Invoke) -> None:
    moves = tmp_path / "moves.json"
    here = file_of(cluster(), tmp_path)
    told = invoke("plan", "drain", "3", "--snapshot", here, "--format", "kafka", "-o", str(moves))
    assert told.exit_code == 0, told.output
    (there,) = parse_reassignment(moves.read_text())
    (back,) = parse_reassignment((tmp_path / "moves.rollback.json").read_text())
    assert 3 not in there.replicas
    assert back.replicas == (2, 3)


def test_plan_refuses_kafka_and_its_own_json_on_one_output(
    tmp_path: Path, refused: Callable[..., str]
) -> None:
    here = file_of(cluster(), tmp_path)
    said = refused("plan", "drain", "3", "--snapshot", here, "--format", "kafka", "--json")
    assert "both want standard output" in said


def test_rebase_plans_the_rest_from_the_present_state(plan_file: str, tmp_path: Path, invoke: Invoke) -> None:
    new = tmp_path / "new.json"
    here = file_of(cluster((5, 2)), tmp_path)
    told = invoke("plan", "rebase", plan_file, "--snapshot", here, "-o", str(new))
    assert told.exit_code == 0, told.output
    assert "1 partition has other replicas: t-0" in told.stdout
    plan = text.loads(new.read_text())
    assert [(move.before, move.after) for move in plan.moves] == [((5, 2), (1, 4)), ((2, 3), (2, 3))]
    assert plan.title == "a title"


def test_rebase_and_show_name_partitions_of_a_recreated_topic(
    plan_file: str, tmp_path: Path, invoke: Invoke
) -> None:
    new = tmp_path / "new.json"
    here = file_of(cluster(topic_id="two"), tmp_path)
    assert invoke("plan", "rebase", plan_file, "--snapshot", here, "-o", str(new)).exit_code == 3
    assert not new.exists()
    told = invoke("plan", "rebase", plan_file, "--snapshot", here, "-o", str(new), "--partial")
    assert told.exit_code == 0, told.output
    for said in (told.stdout, invoke("show", str(new)).stdout):
        assert "t-0: its topic was deleted and made anew" in said
        assert "t-1: its topic was deleted and made anew" in said
    assert not text.loads(new.read_text()).moves
