"""The connection options of every command that talks to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from restow.cli.app import app, run
from restow.cli.shared.connection import Manner, settings_for
from restow.errors import InvalidInput
from tests.unit.cli.test_cli_acls import commands

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE = "127.0.0.1:1"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username='a' password='p4ss'"


def flags(command: Any) -> set[str]:
    return {flag for param in command.params for flag in param.opts}


def test_every_command_with_bootstrap_server_has_the_connection_options() -> None:
    found = {name: flags(each) for name, each in commands(typer.main.get_command(app))}
    talking = {name for name, options in found.items() if "--bootstrap-server" in options}
    assert {"topics list", "cluster status", "broker-check"} <= talking
    assert all({"--command-config", "--command-property"} <= found[name] for name in talking)
    assert "--command-config" not in found["place"]


def write(folder: Path, *lines: str) -> str:
    file = folder / "client.properties"
    file.write_text("\n".join(lines))
    return str(file)


@pytest.mark.parametrize("command", [["topics", "list"], ["broker-check", "1"], ["cluster", "status"]])
def test_command_refuses_a_wrong_properties_file_before_it_connects(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={LOGIN}")
    assert run([*command, "-b", NOWHERE, "--command-config", path]) == 2
    said = capsys.readouterr()
    assert f"{path}:3: sasl.jaas.config: it does not end in a semicolon" in said.err
    assert "p4ss" not in said.out + said.err


def test_flags_override_the_environment_which_overrides_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESTOW_COMMAND_CONFIG", write(tmp_path, "security.protocol=WRONG"))
    assert run(["topics", "list", "-b", NOWHERE]) == 2
    assert "'WRONG' is not one of" in capsys.readouterr().err
    monkeypatch.setenv("RESTOW_CLIENT_SECURITY_PROTOCOL", "WORSE")
    assert run(["topics", "list", "-b", NOWHERE]) == 2
    assert "RESTOW_CLIENT_SECURITY_PROTOCOL: security.protocol: 'WORSE'" in capsys.readouterr().err
    assert run(["topics", "list", "-b", NOWHERE, "--command-property", "security.protocol=WORST"]) == 2
    assert "'WORST' is not one of" in capsys.readouterr().err


def test_connection_options_do_not_carry_over_to_the_next_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["topics", "list", "-b", NOWHERE, "--command-property", "nothing=1"]) == 2
    capsys.readouterr()
    assert run(["topics", "list", "-b", "no address"]) == 2
    assert "is not HOST:PORT" in capsys.readouterr().err


def test_settings_for_overrides_the_file_by_command_properties(tmp_path: Path) -> None:
    file = write(tmp_path, "client.id=me", "request.timeout.ms=1000")
    made = settings_for("h:1", Manner(command_config=file, command_property=("client.id=you",)))
    assert (made.options["client_id"], made.timeout_s) == ("you", 1.0)
    with pytest.raises(InvalidInput, match="cannot be read"):
        settings_for("h:1", Manner(command_config=str(tmp_path / "none")))
