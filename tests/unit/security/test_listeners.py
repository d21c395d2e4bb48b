"""Listeners and logins from Kafka's configs, and in short."""

from __future__ import annotations

from typing import Any

import pytest

from restow.cluster.security.access import Access, parse_users
from restow.cluster.security.broker_doors import Doors
from restow.cluster.security.listeners import SecurityProtocol, listeners_of
from restow.cluster.security.settings import MECHANISMS
from restow.errors import InvalidInput

HOST, PORT = "127.0.0.1", 9092
SASL = {"sasl.enabled.mechanisms": "PLAIN", "sasl.mechanism.inter.broker.protocol": "PLAIN"}
PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b"'


def test_one_plain_listener_by_default() -> None:
    doors = Doors.of({}, HOST, PORT)
    assert [(each.name, each.protocol, each.address) for each in doors.listeners] == [
        ("PLAINTEXT", SecurityProtocol.PLAINTEXT, (HOST, PORT))
    ]
    assert doors.between_brokers == doors.listeners[0]
    assert not doors.logins
    assert doors.peer_login is None


def test_listeners_are_read_as_by_kafka() -> None:
    found = listeners_of(
        {
            "listeners": "inside://:9092, OUTSIDE://[::1]:0",
            "advertised.listeners": "OUTSIDE://kafka.example:9093",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,outside:sasl_plaintext",
        },
        HOST,
        PORT,
    )
    assert [(each.name, each.protocol, each.host, each.port, each.address) for each in found] == [
        ("INSIDE", "PLAINTEXT", HOST, 9092, (HOST, 9092)),
        ("OUTSIDE", "SASL_PLAINTEXT", "::1", 0, ("kafka.example", 9093)),
    ]


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"listeners": "9092"}, "not NAME://host:port"),
        ({"listeners": "A://h:99999"}, "not NAME://host:port"),
        ({"listeners": "A://h:1,A://h:2"}, "names A twice"),
        ({"listeners": "PLAINTEXT://h:1,SSL://h:1"}, "same port"),
        ({"listeners": "A://h:1"}, "the protocol of A is not known"),
        ({"listeners": "A://h:1", "listener.security.protocol.map": "A:TLS"}, "not NAME:PROTOCOL"),
        ({"listeners": "PLAINTEXT://h:1", "advertised.listeners": "B://h:1"}, "none of listeners"),
        ({"listeners": "PLAINTEXT://h:1", "inter.broker.listener.name": "B"}, "none of listeners"),
        ({"listeners": "SASL_PLAINTEXT://h:1"}, "by which brokers reach each other"),
        ({**SASL, "listeners": "PLAINTEXT://h:1,SASL_PLAINTEXT://h:2"}, "is missing: it names the users"),
        ({"listeners": "PLAINTEXT://h:1,SASL_PLAINTEXT://h:2"}, "sasl.enabled.mechanisms"),
        (
            {"listeners": "PLAINTEXT://h:1,SASL_PLAINTEXT://h:2", "sasl.enabled.mechanisms": "GSSAPI"},
            "not GSSAPI",
        ),
        (
            {
                **SASL,
                "listeners": "SASL_PLAINTEXT://h:2",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.jaas.config": f"{PLAIN};",
            },
            "no username and password",
        ),
        (
            {**SASL, "listeners": "PLAINTEXT://h:1,SASL_PLAINTEXT://h:2", "sasl.jaas.config": "secret"},
            "semicolon",
        ),
        (
            {
                "listeners": "PLAINTEXT://h:1,SASL_PLAINTEXT://h:2",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "sasl.jaas.config": f"{PLAIN};",
            },
            "another mechanism",
        ),
    ],
)
def test_contradictory_configs_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        Doors.of(properties, HOST, PORT)
    assert "secret" not in str(refused.value)


def test_logins_may_differ_by_listener_and_mechanism() -> None:
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    doors = Doors.of(
        {
            "listeners": "ONE://h:1,TWO://h:2",
            "listener.security.protocol.map": "ONE:SASL_PLAINTEXT,TWO:SASL_PLAINTEXT",
            "inter.broker.listener.name": "TWO",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.two.sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "sasl.jaas.config": f"{PLAIN};",
            "listener.name.two.scram-sha-512.sasl.jaas.config": f'{scram} username="x" password="y";',
            "listener.name.two.plain.connections.max.reauth.ms": "5000",
        },
        HOST,
        PORT,
    )
    assert doors.logins["ONE"].mechanisms == ("PLAIN",)
    assert doors.logins["ONE"].users == {"PLAIN": {"a": "b"}}
    assert doors.logins["TWO"].mechanisms == ("SCRAM-SHA-512", "PLAIN")
    assert doors.logins["TWO"].max_reauth_ms == {"SCRAM-SHA-512": 0, "PLAIN": 5000}
    assert doors.peer_login is not None
    assert (doors.peer_login.mechanism, doors.peer_login.user) == ("SCRAM-SHA-512", "x")
    assert "'b'" not in repr(doors)
    assert "'y'" not in repr(doors)


def test_users_in_short_become_kafkas_configs() -> None:
    users = {"alice": "p \"\\=;'ü\nq", "a b=c": "x"}
    access = Access.parse(["LOGIN:SASL_PLAINTEXT", "plaintext"], users, "alice")
    doors = Doors.of(access.properties("::1", [1, 2]), HOST, PORT)
    assert [(each.name, each.address) for each in doors.listeners] == [
        ("LOGIN", ("::1", 1)),
        ("PLAINTEXT", ("::1", 2)),
    ]
    login = doors.logins["LOGIN"]
    assert set(login.mechanisms) == set(MECHANISMS) - {"OAUTHBEARER"}
    assert all(found == users for found in login.users.values())
    assert doors.peer_login is not None
    assert (doors.peer_login.user, doors.peer_login.password) == ("alice", users["alice"])
    assert "alice" not in repr(access).replace("broker_user='alice'", "")


@pytest.mark.parametrize(
    ("users", "protocol"), [({}, SecurityProtocol.SSL), ({"alice": "a"}, SecurityProtocol.SASL_SSL)]
)
def test_folder_of_certificates_makes_the_listener_use_tls(
    users: dict[str, str], protocol: SecurityProtocol
) -> None:
    access = Access.parse([], users, "alice" if users else None, tls="made")
    doors = Doors.of(access.properties(HOST, [1]), HOST, PORT)
    assert [each.protocol for each in doors.listeners] == [protocol]
    files = doors.tls[protocol]
    assert (files.keystore, files.truststore) == ("made/server.pem", "made/authority.pem")
    with pytest.raises(InvalidInput, match="uses TLS"):
        Access.parse(["PLAINTEXT"], {}, tls="made")


@pytest.mark.parametrize(
    ("listeners", "users", "broker_user", "why"),
    [
        (["A:TLS"], {}, None, "no listener"),
        (["A:PLAINTEXT", "A:SSL"], {}, None, "same name"),
        (["SASL_PLAINTEXT"], {}, None, "nobody could log in"),
        (["PLAINTEXT"], {"a": "b"}, None, "none of the listeners"),
        (["SASL_PLAINTEXT"], {"a": "b"}, None, "brokers log in"),
        (["SASL_PLAINTEXT"], {"a": "b"}, "c", "brokers log in"),
    ],
)
def test_contradictions_in_short_are_refused(
    listeners: list[str], users: dict[str, str], broker_user: Any, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        Access.parse(listeners, users, broker_user)


def test_users_are_read_from_lines() -> None:
    text = "# who may come in\nalice: pass:word \n\nbob:x"
    assert parse_users(text, "f") == {"alice": " pass:word ", "bob": "x"}


@pytest.mark.parametrize("text", ["", "alice", ":secret", "alice:", "a:secret\na:b"])
def test_unreadable_users_are_refused_without_a_quote(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_users(text, "users.txt")
    assert "users.txt" in str(refused.value)
    assert "secret" not in str(refused.value)
