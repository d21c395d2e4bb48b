"""`restow broker` refuses wrong arguments before it starts. Running brokers are in tests/faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from restow.cli import run
from restow.cli.cluster.broker import parse_configs
from restow.cli.cluster.listening import ListeningOptions
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--store", "127.0.0.1:2181"], "is not the address of a store: write zookeeper://host:port"),
        (["--store", "zookeeper://a"], "names the host 'a': write host:port"),
        (["--config", "log.retention.hours"], "is not NAME=VALUE, like log.retention.hours=24"),
        (["--config", "=1"], "is not NAME=VALUE"),
        (["--config", "num.partitions=many"], "--config: num.partitions must be a number"),
        (["--log-level", "loud"], "--log-level: 'loud' is not one of debug, info, warning, error"),
        (["--host", "::"], "--host: '::' is no address that others can reach this broker at"),
        (["--host", "10.1.2.3"], "if it is meant, say --without-authentication"),
        (["--host", "broker.example"], "is at 'broker.example', which is not a loopback address"),
        (["--config", "listeners=PLAINTEXT://0.0.0.0:1"], "is at '0.0.0.0', which is not a loopback address"),
        (["--config", "listeners=9092"], "listeners: '9092' is not NAME://host:port"),
        (["--listener", "SASL_PLAINTEXT"], "nobody could log in at listener SASL_PLAINTEXT"),
        (["--listener", "A:TLS"], "'A:TLS' is no listener"),
        (["--super-user", "admin"], "brokers reach each other at listener PLAINTEXT without a login"),
        (["--users", "/no/such/file"], "--users: /no/such/file cannot be read"),
        (["--id", "-1"], "--id"),
        (["--log-dirs", "0"], "--log-dirs"),
        (["--port", "65536"], "--port"),
    ],
)
def test_broker_refuses_wrong_arguments(
    flags: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    basis = ["broker", "--id", "1", "--store", "zookeeper://127.0.0.1:2181", "--data", str(tmp_path / "data")]
    assert run([*basis, *flags]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert complaint in said.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("host", ["10.1.2.3", "0.0.0.0", "::", "2001:db8::1", "broker.example"])  # noqa: S104
def test_cluster_listens_beyond_loopback_only_if_told_in_words(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cluster", "up", "--host", host, "--port", "0", "--data", str(tmp_path / "data")]) == 2
    assert f"is at {host!r}, which is not a loopback address" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
    ListeningOptions(host=host, port=0, without_authentication=True).check_reach({})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_word(host: str) -> None:
    ListeningOptions(host=host, port=0).check_reach({})


def test_parse_configs_keeps_the_last_value_of_a_name() -> None:
    assert parse_configs(["a=1", " b = x=y ", "a=2"]) == {"a": "2", "b": "x=y"}


def test_listener_beyond_loopback_that_asks_for_a_login_needs_no_word(tmp_path: Path) -> None:
    from restow.cluster.security.access import Access

    properties = Access.parse(["SASL_PLAINTEXT"], {"a": "b"}, "a").properties("10.1.2.3", [1])
    ListeningOptions(host="10.1.2.3", port=1).check_reach(properties)
    with pytest.raises(InvalidInput, match=r"PLAINTEXT is at '10\.1\.2\.3'"):
        ListeningOptions(host="10.1.2.3", port=1).check_reach({})
    users = tmp_path / "users.txt"
    users.write_text("alice:secret\n")
    assert ListeningOptions(users=str(users)).known_users() == {"alice": "secret"}
