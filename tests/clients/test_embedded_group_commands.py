"""`restow groups` on the embedded cluster, with groups of both protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from restow.cli.app import app
from tests.clients.embedded import embedded
from tests.clients.groups_of_both import PARTITIONS, PROTOCOLS, RECORDS, TOPIC, groups_of_both, restow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data: Path = tmp_path_factory.mktemp("groups")
    with embedded(2, data=data) as running, groups_of_both(running.bootstrap):
        yield running.bootstrap


def test_groups_of_both_protocols_are_listed_and_described(bootstrap: str) -> None:
    listed = restow("groups", "list", "-b", bootstrap)["groups"]
    assert [(each["name"], each["protocol"], each["state"]) for each in listed] == [
        (f"of-{protocol}", protocol, "Stable") for protocol in PROTOCOLS
    ]
    described = restow("groups", "describe", "of-consumer", "of-classic", "-b", bootstrap)["groups"]
    for each, protocol in zip(described, PROTOCOLS, strict=True):
        assert each["protocol"] == protocol
        held = [number for member in each["members"] for number in member["partitions"][TOPIC]]
        assert sorted(held) == list(range(PARTITIONS))
        assert {member["client_id"] for member in each["members"]} == {f"{protocol}-0", f"{protocol}-1"}
        assert {member["protocol"] for member in each["members"]} == {protocol}
    members = described[1]["members"]
    assert all(member["target"] == member["partitions"] for member in members)
    assert described[1]["assignor"] == "uniform"


def test_lag_is_told_in_messages_and_in_time(bootstrap: str) -> None:
    for group in restow("groups", "lag", "-b", bootstrap)["groups"]:
        assert group["lag_messages"] == 3 * PARTITIONS
        for each in group["partitions"]:
            assert (each["committed"], each["log_end"], each["lag_messages"]) == (7, RECORDS, 3)
            # The next record is three minutes old, and gets older; the search is right to about 1 %.
            assert 175_000 <= each["lag_ms"] <= 3_600_000


def test_assignors_are_tried_on_a_live_group(bootstrap: str) -> None:
    tried = restow("groups", "assign", "--group", "of-classic", "--assignor", "sticky", "-b", bootstrap)
    assert tried["comparison"]["moved"] == 0
    then = ("--then", "join:new", "--assignors", "sticky,uniform")
    played = restow("groups", "simulate", "--group", "of-consumer", "-b", bootstrap, *then)
    for (step,) in played["assignors"].values():
        assert (step["fewest"], step["most"], step["moved"]) == (1, 2, 1)
        assert step["most_lag_messages"] == 6


@pytest.mark.parametrize("command", ["describe", "lag"])
def test_unknown_group_is_named(bootstrap: str, command: str) -> None:
    answer = CliRunner().invoke(app, ["groups", command, "nonesuch", "-b", bootstrap])
    assert answer.exit_code == 1
    assert "'nonesuch'" in answer.stderr


def test_tables_show_groups(bootstrap: str) -> None:
    lags = CliRunner().invoke(app, ["groups", "lag", "-b", bootstrap]).stdout
    assert [line.split()[:6] for line in lags.splitlines() if "of-" in line] == [
        [f"of-{protocol}", protocol, "Stable", "2", "4", "12"] for protocol in PROTOCOLS
    ]
    shown = CliRunner().invoke(app, ["groups", "lag", "of-consumer", "-b", bootstrap]).stdout
    assert "12 messages behind" in shown
    described = CliRunner().invoke(app, ["groups", "describe", "of-consumer", "-b", bootstrap]).stdout
    assert "protocol consumer" in described
    assert TOPIC in described
