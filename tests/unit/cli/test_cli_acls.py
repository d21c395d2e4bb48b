"""`restow acls`: the table covers every command, the documents repeat it, and its lines can be run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from restow.cli.app import app, run
from restow.client import BrokerError
from restow.execute.run.lock import GROUP
from restow.model.permissions import NEEDED, RUN_GROUP, Acl
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DOCUMENT = Path(__file__).parents[3] / "docs" / "connections.md"


def commands(group: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    yield name, group
    for each, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {each}".strip())


def test_acls_cover_every_command_that_connects_to_a_cluster() -> None:
    asking = {
        name if not name.startswith("plan") else "plan"
        for name, command in commands(typer.main.get_command(app))
        if not command.hidden and any("--bootstrap-server" in param.opts for param in command.params)
    }
    asking |= {"reassign"}  # its options are Apache's
    assert asking == {name for name in NEEDED if "--" not in name}


def test_acls_grant_the_consumer_group_that_marks_runs() -> None:
    assert RUN_GROUP == GROUP


def _cell(acls: Sequence[Acl], on: str) -> str:
    words = [
        each.operation.title().replace("_", "")
        + (f" on `{each.name}`" if each.name else "")
        + (" (optional)" if each.optional else "")
        for each in acls
        if each.on == on
    ]
    return ", ".join(words) or "–"


def test_acls_in_the_documents_equal_those_of_the_commands() -> None:
    found = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`"):
            for name in cells[0].split(", "):
                found[name.strip("`")] = tuple(cells[1:])
    assert found == {
        name: tuple(_cell(acls, on) for on in ("cluster", "topic", "group")) for name, acls in NEEDED.items()
    }


def test_acls_prints_lines_that_a_shell_splits_correctly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["acls", "plan", "drain", "--principal", "User:a 'b", "--topic", "x", "--topic", "y"]
    assert run([*given, "--json"]) == 0
    lines = [shlex.split(line) for line in json.loads(capsys.readouterr().out)["grants"]]
    who = ["kafka-acls.sh", "--bootstrap-server", "HOST:PORT", "--add", "--allow-principal", "User:a 'b"]
    what = ["--operation", "Describe", "--operation", "DescribeConfigs"]
    assert lines == [
        [*who, *what, "--cluster"],
        [*who, *what, "--topic", "x"],
        [*who, *what, "--topic", "y"],
    ]
    assert run(given) == 0
    assert " ".join(shlex.quote(word) for word in lines[1]) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "says"),
    [(["place"], "asks no cluster"), (["execute", "--principal", "ops"], "is not TYPE:NAME")],
)
def test_acls_refuses_unknown_commands_and_malformed_principals(
    given: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["acls", *given]) == 2
    assert says in capsys.readouterr().err


def test_authorization_error_names_the_missing_acl_and_other_errors_do_not() -> None:
    needs = "DESCRIBE on the cluster"
    assert needs in str(BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, needs=needs))
    assert needs not in str(BrokerError(ErrorCode.REQUEST_TIMED_OUT, needs=needs))
