"""`restow groups` beside kafka-consumer-groups on Apache Kafka 4.3.1, with groups of both protocols."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from harness.tools import Tools
from tests.clients.groups_of_both import PROTOCOLS, groups_of_both, restow
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.apache


def test_groups_are_shown_as_kafkas_own_tool_shows_them(tmp_path: Path) -> None:
    with needs_kafka():
        tools = Tools(KAFKA_4)
        cluster = apache_kafka(tmp_path, version=KAFKA_4)
    with cluster as kafka, groups_of_both(kafka.bootstrap):
        where = ("--bootstrap-server", kafka.bootstrap)
        names = [f"of-{protocol}" for protocol in PROTOCOLS]
        asked = [part for name in names for part in ("--group", name)]
        offsets = rows(tools.run("kafka-consumer-groups", *where, "--describe", *asked))
        states = rows(tools.run("kafka-consumer-groups", *where, "--describe", "--state", *asked))
        listed = restow("groups", "list", "-b", kafka.bootstrap)["groups"]
        described = restow("groups", "describe", *names, "-b", kafka.bootstrap)["groups"]
        lags = restow("groups", "lag", *names, "-b", kafka.bootstrap)["groups"]
    assert [(each["name"], each["protocol"]) for each in listed] == list(zip(names, PROTOCOLS, strict=True))
    assert sorted(offsets, key=str) == sorted(
        (
            {
                "GROUP": group["name"],
                "TOPIC": each["topic"],
                "PARTITION": str(each["partition"]),
                "CURRENT-OFFSET": str(each["committed"]),
                "LOG-END-OFFSET": str(each["log_end"]),
                "LAG": str(each["lag_messages"]),
                "CONSUMER-ID": each["member"],
                **of_member(described, each["member"]),
            }
            for group in lags
            for each in group["partitions"]
        ),
        key=str,
    )
    for group in described:
        (state,) = [each for each in states if each["GROUP"] == group["name"]]
        assert (state["STATE"], state["#MEMBERS"]) == (group["state"], str(len(group["members"])))
        assert state["ASSIGNMENT-STRATEGY"] == group["assignor"]
        assert f"({group['coordinator']})" in state["COORDINATOR"]


def of_member(described: list[Any], member: str) -> dict[str, str]:
    (found,) = [each for group in described for each in group["members"] if each["id"] == member]
    return {"HOST": found["host"], "CLIENT-ID": found["client_id"]}


def rows(text: str) -> list[dict[str, str]]:
    """Return the rows of the tool's tables by their headings."""
    found: list[dict[str, str]] = []
    heads: list[str] = []
    for line in text.splitlines():
        cells = re.sub(r"\s+\(", "(", line).replace("COORDINATOR(ID)", "COORDINATOR").split()
        if cells[:1] == ["GROUP"]:
            heads = cells
        elif heads and len(cells) == len(heads):
            found.append(dict(zip(heads, cells, strict=True)))
    return found
