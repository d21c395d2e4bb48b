"""Logins by token, and secrets in files of their own."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from restow.client import ConnectionSettings, Unreachable, connected
from restow.client.errors import LoginRefused
from restow.client.properties import settings
from restow.client.property_files import from_environment, from_flags, has_secrets
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PROVIDER = "org.apache.kafka.common.config.provider"
SASL = ["security.protocol=SASL_SSL"]
WORD = "p4ss w:o=rd"


def password(made: ConnectionSettings) -> str:
    found: str = made.options["sasl_plain_password"].reveal()
    return found


def write(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


PLAIN = [*SASL, "sasl.mechanism=PLAIN", "sasl.username=alice"]


def test_settings_read_a_password_from_a_file_named_in_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path / "word", f"{WORD}\n")
    environment = from_environment({"RESTOW_CLIENT_SASL_PASSWORD_FILE": file})
    assert password(settings("h:1", from_flags(PLAIN), environment)) == WORD


def test_settings_let_the_stronger_layer_win_over_a_password_file(tmp_path: Path) -> None:
    weak = from_flags([*PLAIN, f"sasl.password.file={write(tmp_path / 'word', 'weak')}"])
    strong = from_environment({"RESTOW_CLIENT_SASL_PASSWORD": WORD})
    assert password(settings("h:1", weak, strong)) == WORD


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 0), (0o644, 1), (0o604, 1)])
def test_settings_warn_of_a_world_readable_password_file(tmp_path: Path, mode: int, warned: int) -> None:
    file = write(tmp_path / "word", WORD, mode)
    warnings: list[str] = []
    settings("h:1", from_flags([*PLAIN, f"sasl.password.file={file}"]), warn=warnings.append)
    assert len(warnings) == warned
    assert all(f"chmod 600 {file}" in each for each in warnings)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "cannot be read: No such file"), ("", "is empty"), ("\n", "is empty")],
)
def test_settings_refuse_a_password_file_without_a_password(
    tmp_path: Path, content: str | None, says: str
) -> None:
    if content is not None:
        write(tmp_path / "word", content)
    with pytest.raises(InvalidInput, match=rf"--command-property: sasl.password.file: .*{says}"):
        settings("h:1", from_flags([*PLAIN, f"sasl.password.file={tmp_path / 'word'}"]))


def test_settings_refuse_a_password_beside_a_file_for_it(tmp_path: Path) -> None:
    both = [*PLAIN, f"sasl.password={WORD}", f"sasl.password.file={write(tmp_path / 'word', WORD)}"]
    with pytest.raises(InvalidInput, match="exclude each other") as told:
        settings("h:1", from_flags(both))
    assert "p4ss" not in str(told.value)


def providers(tmp_path: Path) -> list[str]:
    write(tmp_path / "login.properties", f"word={WORD}\n")
    write(tmp_path / "word", f"{WORD}\n")
    return [
        "config.providers=file, dir,env",
        f"config.providers.file.class={PROVIDER}.FileConfigProvider",
        f"config.providers.dir.class={PROVIDER}.DirectoryConfigProvider",
        f"config.providers.env.class={PROVIDER}.EnvVarConfigProvider",
    ]


@pytest.mark.parametrize(
    "value", ["${file:FOLDER/login.properties:word}", "${dir:FOLDER:word}", "${env:WORD}", "p4ss ${env:REST}"]
)
def test_settings_resolve_values_like_kafkas_config_providers(tmp_path: Path, value: str) -> None:
    given = [*PLAIN, *providers(tmp_path), f"sasl.password={value.replace('FOLDER', str(tmp_path))}"]
    made = settings("h:1", from_flags(given), environment={"WORD": WORD, "REST": "w:o=rd"})
    assert password(made) == WORD


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("${file:FOLDER/none:word}", "cannot be read"),
        ("${file:FOLDER/login.properties:other}", "has no value of the name"),
        ("${env:OTHER}", "the environment has no value"),
        ("${dir:FOLDER:../word}", "has a slash"),
        ("${dir:FOLDER:none}", "cannot be read"),
    ],
)
def test_settings_report_a_value_that_a_provider_does_not_have(tmp_path: Path, value: str, says: str) -> None:
    given = [*PLAIN, *providers(tmp_path), f"sasl.password={value.replace('FOLDER', str(tmp_path))}"]
    with pytest.raises(InvalidInput, match=says) as told:
        settings("h:1", from_flags(given), environment={"WORD": WORD})
    assert "p4ss" not in str(told.value)


def test_settings_keep_a_reference_to_an_unknown_provider() -> None:
    assert password(settings("h:1", from_flags([*PLAIN, "sasl.password=${vault:a:b}"]))) == "${vault:a:b}"


def test_has_secrets_counts_values_and_no_references() -> None:
    assert has_secrets(from_flags(["sasl.password=x"]))
    assert not has_secrets(from_flags(["sasl.password=${env:X}", "sasl.password.file=/x", "client.id=a"]))


@dataclass
class TokenServer:
    """A token endpoint with given answers that records its requests."""

    url: str
    status: int = 200
    answer: bytes = b'{"access_token": "t0ken", "expires_in": 3600}'
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[Mapping[str, str], dict[str, list[str]]]] = field(default_factory=list)


@pytest.fixture
def endpoint() -> Iterator[TokenServer]:
    with _serving() as found:
        yield found


@contextmanager
def _serving() -> Iterator[TokenServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found.asked.append((dict(self.headers), parse_qs(body)))
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found.answer)

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = TokenServer(f"http://127.0.0.1:{server.server_port}/token?key=p4ss")
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield found
        finally:
            server.shutdown()
            serving.join()


def by_token(endpoint: TokenServer, *more: str) -> ConnectionSettings:
    given = [*SASL, "sasl.mechanism=OAUTHBEARER", f"sasl.oauthbearer.token.endpoint.url={endpoint.url}"]
    return settings("127.0.0.1:1", from_flags([*given, *more]))


CREDENTIALS = (
    "sasl.oauthbearer.client.credentials.client.id=me",
    f"sasl.oauthbearer.client.credentials.client.secret={WORD}",
    "sasl.oauthbearer.scope=kafka",
)


@pytest.mark.parametrize(
    "given",
    [
        CREDENTIALS,
        (f'sasl.jaas.config={OAUTH} required clientId="me" clientSecret="{WORD}" scope="kafka";',),
    ],
)
def test_tokens_come_from_the_endpoint_by_client_credentials(
    endpoint: TokenServer, given: tuple[str, ...]
) -> None:
    provider = by_token(endpoint, *given).options["sasl_oauth_token_provider"]
    assert [provider.token(), provider.token()] == ["t0ken", "t0ken"]
    ((headers, form),) = endpoint.asked
    assert headers["Authorization"] == f"Basic {base64.b64encode(f'me:{WORD}'.encode()).decode()}"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


def test_tokens_without_a_lifetime_are_requested_each_time(endpoint: TokenServer) -> None:
    endpoint.answer = b'{"access_token": "t0ken"}'
    provider = by_token(endpoint, *CREDENTIALS).options["sasl_oauth_token_provider"]
    assert [provider.token(), provider.token()] == ["t0ken", "t0ken"]
    assert len(endpoint.asked) == 2


def test_tokens_carry_the_extensions_of_the_login_line(endpoint: TokenServer) -> None:
    jaas = f'sasl.jaas.config={OAUTH} required clientId="me" clientSecret="x" extension_logicalCluster="lkc";'
    assert by_token(endpoint, jaas).options["sasl_oauth_token_provider"].extensions() == {
        "logicalCluster": "lkc"
    }


@pytest.mark.parametrize(
    ("status", "answer", "kind", "says"),
    [
        (401, f'{{"error": "invalid_client", "p4ss": "{WORD}"}}', LoginRefused, r"\(401 invalid_client\)"),
        (403, f"{WORD}", LoginRefused, r"\(403\)"),
        (500, "", Unreachable, r"has no token \(500\)"),
        (302, "", Unreachable, r"has no token \(302\)"),
        (200, "<html>", Unreachable, "not with JSON"),
        (200, "{}", LoginRefused, "holds no bearer token"),
        (200, '{"access_token": "a\\u0001b"}', LoginRefused, "holds no bearer token"),
    ],
)
def test_connect_reports_the_answer_of_the_token_endpoint_and_asks_no_broker(
    endpoint: TokenServer, status: int, answer: str, kind: type[Exception], says: str
) -> None:
    endpoint.status, endpoint.answer = status, answer.encode()
    endpoint.headers = {"Location": endpoint.url} if status == 302 else {}

    async def main() -> None:
        async with connected(by_token(endpoint, *CREDENTIALS)):
            raise AssertionError("somebody answered")

    with pytest.raises(kind, match=says) as told:
        asyncio.run(main())
    assert "p4ss" not in str(told.value)
    assert len(endpoint.asked) == 1


def test_tokens_are_read_from_a_file_each_time(tmp_path: Path) -> None:
    file = write(tmp_path / "a token", "first\n")
    given = [*SASL, "sasl.mechanism=OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=file://" + file]
    provider = settings("h:1", from_flags(given)).options["sasl_oauth_token_provider"]
    assert provider.token() == "first"
    write(tmp_path / "a token", "second")
    assert provider.token() == "second"
    (tmp_path / "a token").unlink()
    with pytest.raises(LoginRefused, match="cannot be read"):
        provider.token()


def test_tokens_for_development_are_unsigned_and_name_the_user() -> None:
    jaas = f'sasl.jaas.config={OAUTH} required unsecuredLoginStringClaim_sub="alice";'
    made = settings("h:1", from_flags([*SASL, "sasl.mechanism=OAUTHBEARER", jaas]))
    header, claims, signature = made.options["sasl_oauth_token_provider"].token().split(".")
    assert signature == ""
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
    told = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert told["sub"] == "alice"
    assert told["exp"] - told["iat"] == pytest.approx(3600)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.com/token", "in the clear: use https"),
        ("https://me:p4ss@example.com/", "leave user and password out"),
        ("ftp://example.com/", "neither a URL of https"),
        ("token", "neither a URL of https"),
        ("https://example.com/token", "id or secret is missing"),
    ],
)
def test_settings_refuse_an_unusable_token_endpoint(url: str, says: str) -> None:
    given = [*SASL, "sasl.mechanism=OAUTHBEARER", f"sasl.oauthbearer.token.endpoint.url={url}"]
    with pytest.raises(InvalidInput, match=says) as told:
        settings("h:1", from_flags(given))
    assert "p4ss" not in str(told.value)


def test_settings_take_kafkas_own_callback_handler_and_refuse_others(endpoint: TokenServer) -> None:
    name = "sasl.login.callback.handler.class"
    ours = f"{name}=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    by_token(endpoint, *CREDENTIALS, ours)
    with pytest.raises(InvalidInput, match="none of those whose work restow does"):
        by_token(endpoint, *CREDENTIALS, f"{name}=com.example.Mine")


def test_token_provider_does_not_show_its_secrets(endpoint: TokenServer) -> None:
    assert "p4ss" not in repr(dict(by_token(endpoint, *CREDENTIALS).options))
