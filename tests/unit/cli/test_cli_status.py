"""`restow cluster status`: the table and its remarks."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from restow.cli.app import run
from restow.cli.cluster.status_view import Status, read_status, status_view
from restow.cli.topics import delete as topics_delete
from restow.cli.topics import describe as topics_describe
from restow.cli.topics import list_topics
from restow.client import BrokerError, ClusterView, ConfigResource, Node
from restow.model.permissions import Permissions
from restow.wire.error_codes import ErrorCode
from tests.clock import SleepingClock
from tests.unit.execute.fake_admin import FakeAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from restow.client import BrokerLogDirs
    from restow.model import Topic


def fake() -> FakeAdmin:
    admin = FakeAdmin(SleepingClock(), {1, 2})
    admin.add("t", [(1, 2)])
    return admin


def status(admin: FakeAdmin) -> Status:
    return asyncio.run(read_status(admin))


def drawn(found: Status, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False).print(status_view(found))
    return out.getvalue()


def told(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, controller: int | BrokerError | None) -> None:
    async def ask() -> int | None:
        if isinstance(controller, BrokerError):
            raise controller
        return controller

    monkeypatch.setattr(admin, "controller", ask)


def test_status_marks_the_broker_that_leads_the_quorum(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    told(monkeypatch, admin, 2)
    found = status(admin)
    assert [line.id for line in found.brokers if line.is_controller] == [2]
    assert found.document()["controller"] == 2


def test_status_tells_a_listed_broker_that_does_not_answer() -> None:
    """Its session has not expired yet. Its state is neither `up` nor `down`."""
    admin = fake()
    admin.silent = {2}
    found = status(admin)
    assert [line.state for line in found.brokers] == ["controller", "no answer"]
    assert [each["answers"] for each in found.document()["brokers"]] == [True, False]
    assert "no answer" in drawn(found)


def test_status_names_a_controller_that_is_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    told(monkeypatch, admin, 100)
    assert "controller: node 100, the leader of the metadata quorum" in drawn(status(admin))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "there is no controller at the moment"),
        (BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "the controller is not known"),
    ],
)
def test_status_marks_no_controller_when_it_is_unknown(
    answer: BrokerError | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = fake()
    told(monkeypatch, admin, answer)
    found = status(admin)
    assert not any(line.is_controller for line in found.brokers)
    assert any(words in each for each in found.warnings)
    assert words in drawn(found)


def test_status_counts_under_replicated_partitions_as_kafka_does() -> None:
    """A replica that is being added need not be in sync; one that is kept must be."""
    admin = fake()
    name = next(iter(admin.assignments))
    admin.assignments[name] = admin.assignments[name].reassign_to((3, 1))
    assert status(admin).under_replicated == 0
    admin.lagging.add((name, admin.assignments[name].replicas[-1]))
    assert status(admin).under_replicated == 1


def test_status_names_cordoned_and_failed_log_dirs(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    as_before = admin.describe_log_dirs

    async def disks(
        brokers: Iterable[int], _patience_s: float | None = None
    ) -> Mapping[int, BrokerLogDirs | BrokerError]:
        answers = dict(await as_before(brokers))
        first = answers[1]
        assert not isinstance(first, BrokerError)
        (only,) = first.log_dirs
        dirs = (replace(only, cordoned=True), replace(only, path="/e", failed=True))
        return {**answers, 1: replace(first, log_dirs=dirs)}

    monkeypatch.setattr(admin, "describe_log_dirs", disks)
    text = drawn(status(admin))
    assert "broker 1, cordoned log dirs: /d\n" in text
    assert "broker 1, failed log dirs: /e\n" in text
    assert "broker 2, cordoned" not in text


def test_status_warns_of_topics_without_describe_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    admin.add("secret", [(1,)])
    all_of_them = admin.describe_topics

    async def visible(names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return tuple(each for each in await all_of_them(names) if each.name != "secret")

    monkeypatch.setattr(admin, "describe_topics", visible)
    admin.allowed = Permissions(topics={"secret": frozenset()})
    found = status(admin)
    words = "1 topic cannot be seen, because DESCRIBE on it is not allowed: secret"
    assert found.document()["warnings"] == [words]
    assert words in drawn(found)


def test_status_cleans_hosts_racks_and_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    told(monkeypatch, admin, BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "\x1b[2J"))

    async def cluster() -> ClusterView:
        nodes = (Node(id=1, host="h\x1b[31m", port=1, rack="r\x07"), Node(id=2, host="h", port=1))
        return ClusterView(cluster_id="c", nodes=nodes)

    monkeypatch.setattr(admin, "describe_cluster", cluster)
    text = drawn(status(admin))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "h\\x1b[31m:1" in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_status_shows_every_number_whole_in_a_narrow_terminal(width: int) -> None:
    admin = fake()
    found = status(admin)
    lines = tuple(
        replace(each, address="a-long-host-name.example.com:9092", replicas=1_234_567)
        for each in found.brokers
    )
    text = drawn(replace(found, brokers=lines), width)
    assert text.count("1,234,567") == 2


HOSTILE = "t\x1b[2J\x07"


def test_topics_describe_and_errors_clean_names_and_configs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = FakeAdmin(SleepingClock(), {1, 2})
    admin.add(HOSTILE, [(1, 2)])
    admin.set_[ConfigResource("topic", HOSTILE)] = {HOSTILE: HOSTILE}

    def on_fake(_: str, work: Callable[[FakeAdmin], Coroutine[Any, Any, object]]) -> object:
        return asyncio.run(work(admin))

    for module in (topics_describe, list_topics, topics_delete):
        monkeypatch.setattr(module, "on_cluster", on_fake)
    flags = ["-b", "127.0.0.1:1"]
    assert run(["topics", "describe", HOSTILE, *flags]) == 0
    assert run(["topics", "list", *flags]) == 0
    assert run(["topics", "delete", HOSTILE, *flags]) == 2
    assert run(["topics", "describe", f"no {HOSTILE}", *flags]) == 1
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "\\x1b[2J" in text
        assert "\x1b" not in text
        assert "\x07" not in text
