"""Every number on the pages is the one that the command prints, on a cluster with data, groups and a run."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from contextlib import closing, redirect_stdout
from html import unescape
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

import restow
from restow.cli import run
from restow.client import NewTopic
from restow.cluster.threaded import ThreadedCluster
from restow.sizes import human_bytes, human_duration
from tests.browser.served import served_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.browser.served import ServedPages

WAIT_S = 180
COMMITTED = {0: 10, 1: 0, 2: 37}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Three brokers, of which the last is empty, and a group that has read a part of a topic."""
    with ThreadedCluster(brokers=3, racks=("a", "b", "c")) as started:
        with restow.connect(started.bootstrap) as kafka:
            topics = [
                NewTopic(name="orders", by_hand=dict.fromkeys(range(6), (0, 1))),
                NewTopic(name="clicks", by_hand={0: (1, 2)}),
            ]
            kafka.ask(lambda admin: admin.create_topics(topics))
        with closing(KafkaProducer(bootstrap_servers=started.bootstrap, acks="all")) as producer:
            for number in range(600):
                producer.send("orders", b"x" * 2_000, partition=number % 6)
            producer.flush()
        consumer = KafkaConsumer(
            bootstrap_servers=started.bootstrap, group_id="billing", enable_auto_commit=False
        )
        with closing(consumer):
            consumer.assign([TopicPartition("orders", each) for each in COMMITTED])
            consumer.commit(
                {
                    TopicPartition("orders", at): OffsetAndMetadata(each, "", -1)
                    for at, each in COMMITTED.items()
                }
            )
        yield started.bootstrap


@pytest.fixture(scope="module")
def pages(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPages]:
    folder = tmp_path_factory.mktemp("pages")
    with served_pages(folder, "-b", bootstrap, "--journal", str(folder / "state")) as found:
        until(lambda: "cluster_id" in asked(found, "/cluster"))
        yield found


def until(happened: Any, why_not: Any = lambda: "") -> None:
    end = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < end, why_not()
        time.sleep(0.1)


def got(pages: ServedPages, address: str, body: object = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {pages.tokens['operator']}", "content-type": "application/json"}
    request = urllib.request.Request(pages.address + address, data, headers)  # noqa: S310
    with urllib.request.urlopen(request) as answer:  # noqa: S310  (our own server)
        return str(answer.read().decode())


def asked(pages: ServedPages, path: str, body: object = None) -> Any:
    return json.loads(got(pages, f"/api/v1{path}", body))


def tiles(text: str) -> dict[str, str]:
    """Return the headline numbers of a page by their names."""
    found = re.findall(r"<div class='tile \w*'><b>(.*?)</b><span>(.*?)</span></div>", text)
    return {unescape(name): unescape(value) for value, name in found}


def rows(text: str, caption: str) -> list[list[str]]:
    """Return the cells of a table, without its tags."""
    table = text.partition(f"<caption>{caption}</caption>")[2].partition("</table>")[0]
    return [
        [
            unescape(re.sub(r"<title>.*?</title>|<.*?>", "", cell))
            for cell in re.findall(r"<td.*?>(.*?)</td>", row)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2])
    ]


def said(*command: str) -> Any:
    out = StringIO()
    with redirect_stdout(out):
        assert run([*command, "--json"]) == 0
    return json.loads(out.getvalue().splitlines()[-1])


def done(pages: ServedPages, path: str, body: object) -> dict[str, Any]:
    job = asked(pages, path, body)["job"]
    until(lambda: asked(pages, f"/jobs/{job}")["done"])
    told: dict[str, Any] = asked(pages, f"/jobs/{job}")
    assert told["exit_code"] == 0, told
    return told


def test_cluster_page_has_the_numbers_of_cluster_status(pages: ServedPages, bootstrap: str) -> None:
    differing: list[tuple[Any, Any]] = []

    def the_same() -> bool:
        """Whether the page shows what is; it may be late, for tests before this one move replicas."""
        status, text = said("cluster", "status", "-b", bootstrap), got(pages, "/")
        told = {each["id"]: each for each in asked(pages, "/cluster")["brokers"]}
        both = [(tiles(text)[name], number) for name, number in headlines_of(status).items()]
        for each in status["brokers"]:
            same = ("rack", "replicas", "leaders", "size_bytes", "address")
            both.append(([told[each["id"]][name] for name in same], [each[name] for name in same]))
            [row] = [row for row in rows(text, f"Rack {each['rack']}") if row[0] == str(each["id"])]
            both.append(
                (row[3:6], [human_bytes(each["size_bytes"]), f"{each['leaders']}", f"{each['replicas']}"])
            )
        differing[:] = [each for each in both if each[0] != each[1]]
        return not differing

    until(the_same, lambda: differing)


def headlines_of(status: dict[str, Any]) -> dict[str, str]:
    """Return the tiles of the first page that belong to what `cluster status` has said."""
    return {
        "partitions": f"{status['partitions']:,}",
        "brokers up": f"{len(status['brokers'])}",
        "topics": f"{status['topics']}",
        "under-replicated": f"{status['under_replicated']}",
        "offline": f"{status['offline']}",
        "not led by their first replica": f"{status['not_preferred']}",
        "in all replicas": human_bytes(sum(each["size_bytes"] for each in status["brokers"])),
    }


def test_group_page_has_the_lag_of_groups_lag(pages: ServedPages, bootstrap: str) -> None:
    until(lambda: asked(pages, "/groups?search=billing")["total"])
    [group] = said("groups", "lag", "billing", "-b", bootstrap)["groups"]
    text = got(pages, "/group?name=billing")
    assert tiles(text)["messages behind"] == f"{group['lag_messages']:,}"
    lags = {each["partition"]: each["lag_messages"] for each in group["partitions"]}
    assert {int(row[0].rpartition("-")[2]): int(row[4]) for row in rows(text, "partitions")} == lags
    [told] = asked(pages, "/groups?search=billing")["groups"]
    assert (told["lag"], told["protocol"]) == (group["lag_messages"], "classic")
    assert sum(lags.values()) == 300 - sum(COMMITTED.values())


def test_plan_rehearsal_and_run_have_the_numbers_of_their_commands(
    pages: ServedPages, bootstrap: str, tmp_path: Path
) -> None:
    plan = done(pages, "/plans", {"kind": "balance"})["job"]
    path = tmp_path / "plan.json"
    path.write_text(got(pages, f"/plans/{plan}/download"), encoding="utf-8")
    document = said("show", str(path))
    shown = tiles(got(pages, f"/plans/{plan}"))
    read = restow.read_plan(path)
    assert shown["moves"] == f"{len(read.moves)}" == f"{document['moves']}"
    assert shown["to copy"] == human_bytes(document["bytes_to_copy"])
    moves = rows(got(pages, f"/plans/{plan}"), "moves in their order")
    assert [(row[0], row[2], row[3], row[4]) for row in moves] == [
        (str(each.partition), ", ".join(map(str, each.after)), human_bytes(each.bytes_to_copy), each.reason)
        for each in read.moves_in_order
    ]
    rehearsal = done(pages, f"/plans/{plan}/rehearsals", {"options": {"throttle": "1MB/s"}})["job"]
    told = asked(pages, f"/plans/{plan}/rehearsals/{rehearsal}")["told"]
    shown = tiles(got(pages, f"/plans/{plan}/rehearsals/{rehearsal}"))
    assert shown["most likely"] == human_duration(told["seconds"]["p50"])
    assert shown["to copy"] == human_bytes(told["bytes_to_copy"])
    cluster = asked(pages, "/cluster")["cluster_id"]
    begun = asked(pages, f"/plans/{plan}/runs", {"cluster": cluster, "options": {"throttle": "none"}})["job"]
    until(lambda: asked(pages, f"/jobs/{begun}")["done"])
    name = asked(pages, f"/jobs/{begun}")["run"]
    until(lambda: asked(pages, f"/runs/{name}")["outcome"])
    ended = asked(pages, f"/runs/{name}")
    assert (ended["outcome"], ended["arrived"], ended["moves"]) == ("done", len(read.moves), len(read.moves))
    assert ended["bytes_to_copy"] == document["bytes_to_copy"]
    assert tiles(got(pages, f"/runs/{name}"))["moves arrived"] == f"{len(read.moves)} of {len(read.moves)}"
    verdict = said("verify", str(path), "-b", bootstrap, "--journal", str(tmp_path))
    assert verdict["holds"]
