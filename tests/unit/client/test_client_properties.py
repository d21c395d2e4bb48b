"""Kafka's client properties: their meaning, refusals, and that secrets stay secret."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from restow.client.jaas import parse_login
from restow.client.properties import settings
from restow.client.property_files import from_environment, from_flags, read_properties
from restow.client.secrets import keep_credentials_out_of_logs
from restow.errors import InvalidInput
from restow.runtime.secrets import HIDDEN, Secret

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
WORD = "p4ss;w=o'r d"


def write(folder: Path, text: str) -> str:
    file = folder / "client.properties"
    file.write_bytes(text.encode("latin-1"))
    return str(file)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb: 2\nc 3\nd", {"a": "1", "b": "2", "c": "3", "d": ""}),
        ("# no\n! no\n\n  a  =  1  ", {"a": "1  "}),
        ("a=1\\\n   2\\\n\t3\nb=4", {"a": "123", "b": "4"}),
        ("a=\\u00e9\\n\\t\\\\x", {"a": "é\n\t\\x"}),
        ("a\\=b=c=d", {"a=b": "c=d"}),
        ("a=1\r\nb=2\ra=3", {"a": "3", "b": "2"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=\xe9", {"a": "é"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_files_are_read_as_java_does(tmp_path: Path, text: str, found: dict[str, str]) -> None:
    read = read_properties(write(tmp_path, text))
    assert {name: each.value for name, each in read.items()} == found


def test_property_knows_its_source(tmp_path: Path) -> None:
    path = write(tmp_path, "# one\nclient.id=a\\\n  b\nretries=3\n")
    assert {name: each.where for name, each in read_properties(path).items()} == {
        "client.id": f"{path}:2",
        "retries": f"{path}:4",
    }


def test_incomplete_escape_and_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"client.properties:1: after \\u"):
        read_properties(write(tmp_path, "a=\\u12"))
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_properties(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("options", "user", "password"),
    [
        ('username="alice" password="a;b=c"', "alice", "a;b=c"),
        ("username='alice' password='a\"b'", "alice", 'a"b'),
        ('password="a\\"b\\\\c" username=alice serviceName="kafka"', "alice", 'a"b\\c'),
        ('username="" password=""', "", ""),
        ('\n username="é"\n password="ü"', "é", "ü"),
    ],
)
def test_login_is_parsed_as_java_does(options: str, user: str, password: str) -> None:
    login = parse_login(f"{PLAIN} required {options};", "here")
    assert (login.family, login.username, login.password) == ("PLAIN", user, password)
    assert parse_login(f"  {SCRAM} REQUIRED {options} ; ", "here").family == "SCRAM"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "semicolon"),
        (f'{PLAIN} required username="a" password="{WORD}"', "semicolon"),
        (f'{PLAIN} username="a" password="{WORD}";', "after the login module"),
        (f'{PLAIN} required username="a" password="{WORD};', "not closed"),
        (f'{PLAIN} required username password="{WORD}";', "name=value"),
        (f'{PLAIN} required username="a" password=;', "name=value"),
        (f'{PLAIN} required password="{WORD}";', "no username"),
        (f'{PLAIN} required username="{WORD}";', "no password"),
        (f'com.example.MyModule required username="a" password="{WORD}";', "it knows PlainLoginModule"),
        (f'{SCRAM} required username="a" password="{WORD}" tokenauth="true";', "delegation token"),
    ],
)
def test_invalid_login_is_reported_without_quoting_it(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as told:
        parse_login(text, "client.properties:7")
    assert "client.properties:7" in str(told.value)
    assert "p4ss" not in str(told.value)


def test_later_layers_win(tmp_path: Path) -> None:
    file = read_properties(write(tmp_path, "client.id=file\nrequest.timeout.ms=1500\nretry.backoff.ms=7"))
    environment = from_environment({"RESTOW_CLIENT_CLIENT_ID": "env", "RESTOW_CLIENT_RETRY_BACKOFF_MS": "8"})
    made = settings("h:1", file, environment, from_flags(["client.id=flag"]))
    assert made.options["client_id"] == "flag"
    assert made.options["retry_backoff_ms"] == 8
    assert (made.bootstrap, made.timeout_s) == ("h:1", 1.5)


def test_properties_of_consumers_and_producers_are_ignored() -> None:
    made = settings("h:1", from_flags(["group.id=g", "acks=all", "bootstrap.servers=x:1"]))
    assert made.options == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_login_is_passed_on(mechanism: str) -> None:
    jaas = f'{SCRAM} required username="alice" password="{WORD}";'
    made = settings(
        "h:1",
        from_flags(
            ["security.protocol=sasl_plaintext", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={jaas}"]
        ),
    )
    assert made.options["security_protocol"] == "SASL_PLAINTEXT"
    assert made.options["sasl_mechanism"] == mechanism
    assert made.options["sasl_plain_username"] == "alice"
    assert made.options["sasl_plain_password"].reveal() == WORD


def test_user_and_password_work_without_jaas() -> None:
    made = settings(
        "h:1",
        from_flags(["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=alice"]),
        from_environment({"RESTOW_CLIENT_SASL_PASSWORD": WORD}),
    )
    assert made.options["sasl_plain_password"].encode() == WORD.encode()
    assert made.options["ssl_context"].check_hostname


LOGIN = [f'sasl.jaas.config={PLAIN} required username="a" password="{WORD}";', "sasl.mechanism=PLAIN"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["securty.protocol=SSL"], "did you mean security.protocol"),
        (["username=a password=p4ss;"], "must end in a backslash"),
        (["p4ss.like.it=1"], "no property of Kafka's clients: if this goes on"),
        (["security.protocol=TLS"], "'TLS' is not one of PLAINTEXT, SSL"),
        (["request.timeout.ms=soon"], "not a number of at least 1"),
        (["request.timeout.ms=0"], "not a number of at least 1"),
        (["ssl.cipher.suites=X"], "is not supported"),
        (["config.providers=file"], r"NAME.class must be one of .*FileConfigProvider"),
        (["sasl.oauthbearer.assertion.algorithm=RS256"], "only client credentials"),
        (LOGIN, r"security.protocol is PLAINTEXT \(the default\)"),
        ([*LOGIN, "security.protocol=SSL"], "set it to SASL_SSL or SASL_PLAINTEXT"),
        (["ssl.truststore.location=t", "security.protocol=PLAINTEXT"], "set it to SSL or SASL_SSL"),
        (["ssl.keystore.key=k", *LOGIN, "security.protocol=SASL_PLAINTEXT"], "set it to SSL or SASL_SSL"),
        (["security.protocol=SASL_SSL"], "GSSAPI, Kafka's default: set sasl.kerberos.service.name"),
        (["security.protocol=SASL_SSL", LOGIN[0]], r"GSSAPI \(Kafka's default\): they must agree"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=DIGEST-MD5"], "'DIGEST-MD5' is not known"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=OAUTHBEARER"], "token.endpoint.url"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"], "no user is given"),
        (["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", "sasl.username=a"], "no user is given"),
        (["security.protocol=SASL_SSL", *LOGIN, "sasl.mechanism=SCRAM-SHA-256"], "they must agree"),
        (["security.protocol=SASL_SSL", *LOGIN, f"sasl.password={WORD}"], "exclude each other"),
        (["security.protocol=SSL", "ssl.endpoint.identification.algorithm=dns"], "'dns' is not known"),
        (["security.protocol=SSL", "ssl.enabled.protocols=TLSv1.1"], "not TLSv1.2 or TLSv1.3"),
        (["security.protocol=SSL", "ssl.truststore.location=/no/such"], "cannot be read"),
        (["security.protocol=SSL", "ssl.truststore.type=BKS"], "'BKS' is not known"),
        (["security.protocol=SSL", "ssl.truststore.certificates=x"], "needs ssl.truststore.type=PEM"),
        ([f"={WORD}"], "not NAME=VALUE"),
        (["p4ss"], "not NAME=VALUE"),
    ],
)
def test_invalid_properties_are_refused(given: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as told:
        settings("h:1", from_flags(given))
    assert "p4ss" not in str(told.value)


@pytest.mark.parametrize(
    "lines",
    [
        (f"sasl.jaas.config={PLAIN} required", f'  username="alice" password="{WORD}";'),
        (f"sasl.jaas.config={PLAIN} required", f'  password="{WORD}" username="alice";'),
        ("sasl.password=abc", "p4ssword"),
        ("sasl.password=abc", "p4ss = word"),
        ("ssl.keystore.key=-----BEGIN PRIVATE KEY-----", "MIIp4ssEowIBAAKCAQEA=="),
        ("ssl.keystore.key=x", "security.p4ss=y"),
    ],
)
def test_settings_show_nothing_of_a_secret_that_lost_its_backslash(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    path = write(tmp_path, "\n".join(["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", *lines]))
    read = read_properties(path)
    with pytest.raises(InvalidInput, match=r"client.properties:4: there is a name") as told:
        settings("h:1", read)
    for shown in (str(told.value), repr(told.value), repr(read[lines[0].partition("=")[0]])):
        assert "p4ss" not in shown
        assert "alice" not in shown
    assert "p4ss" not in repr([each.value for each in read.values()])


@pytest.mark.parametrize("algorithm", [("https", True), ("HTTPS", True), ("", False)])
def test_host_name_check_can_be_disabled(algorithm: tuple[str, bool]) -> None:
    given = ["security.protocol=SSL", f"ssl.endpoint.identification.algorithm={algorithm[0]}"]
    assert settings("h:1", from_flags(given)).options["ssl_context"].check_hostname is algorithm[1]


def test_secret_does_not_show_itself() -> None:
    secret = Secret(WORD)
    shown = f"{secret} {secret!r} {secret!s} {secret:>30} {[secret]} %s %r {{}}" % (secret, secret)
    assert "p4ss" not in shown.format(secret)
    assert HIDDEN in shown
    assert secret == WORD
    assert secret.reveal() == WORD


def test_no_kept_value_shows_a_secret() -> None:
    flags = from_flags(["security.protocol=SASL_PLAINTEXT", *LOGIN, "ssl.key.password=" + WORD])
    assert "p4ss" not in repr(flags)
    del flags["ssl.key.password"]
    made = settings("h:1", flags)
    assert "p4ss" not in repr(made)
    assert "p4ss" not in repr(dict(made.options))


def test_requests_that_log_in_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    from kafka.protocol.sasl import SaslAuthenticateRequest

    keep_credentials_out_of_logs()
    with caplog.at_level(logging.DEBUG, logger="kafka"):
        for name in ("kafka.net.connection", "kafka.protocol.parser"):
            log = logging.getLogger(name)
            log.debug("%s Request %d: %s", "me", 1, SaslAuthenticateRequest(auth_bytes=b"\0a\0p4ss"))
            log.debug("%s Send: %r", "me", bytearray(b"\0a\0p4ss"))
            log.debug("%s Request %d: %s", "me", 2, "something else")
    assert "something else" in caplog.text
    assert "p4ss" not in caplog.text
