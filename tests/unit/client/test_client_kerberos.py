"""Logins by Kerberos and by Amazon's IAM, as far as no server is needed."""

from __future__ import annotations

import asyncio
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from restow.client import ConnectionSettings, connected, kerberos, logins
from restow.client.errors import LoginRefused
from restow.client.kerberos import KerberosLogin
from restow.client.properties import settings
from restow.client.property_files import from_flags
from restow.cluster.embedded import EmbeddedCluster
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

SASL = ["security.protocol=SASL_SSL"]
KERBEROS = [*SASL, "sasl.mechanism=GSSAPI", "sasl.kerberos.service.name=kafka"]
KRB5 = "sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required"
AMAZON = [*SASL, "sasl.mechanism=AWS_MSK_IAM"]


@pytest.mark.parametrize(("given", "package"), [(KERBEROS, "gssapi"), (AMAZON, "botocore")])
def test_settings_name_the_package_that_a_mechanism_needs(
    given: list[str], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(InvalidInput, match=f"pip install {package}$"):
        settings("h:1", from_flags(given))


def kerberos_login(made: ConnectionSettings) -> object:
    return getattr(made.credentials, "__self__", None)


def test_settings_pass_kerberos_and_amazon_on_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "find_spec", lambda _: object())
    made = settings("h:1", from_flags([*KERBEROS, f"{KRB5} useKeyTab=true keyTab='/k' principal='a@B';"]))
    assert made.options["sasl_mechanism"] == "GSSAPI"
    assert made.options["sasl_kerberos_service_name"] == "kafka"
    assert kerberos_login(made) == KerberosLogin(principal="a@B", keytab="/k")
    made = settings("h:1", from_flags([*KERBEROS, f"{KRB5} useTicketCache=true ticketCache='/t';"]))
    assert kerberos_login(made) == KerberosLogin(ticket_cache="/t")
    iam = "sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;"
    handler = "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    amazon(monkeypatch, credentials=object(), region="eu-west-1")
    made = settings("h:1", from_flags([*AMAZON, iam, handler]))
    assert made.options["sasl_mechanism"] == "AWS_MSK_IAM"


@pytest.mark.parametrize("option", ["keyTab", "ticketCache"])
def test_connect_names_an_unreadable_file_of_kerberos_and_asks_no_broker(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logins, "find_spec", lambda _: object())
    monkeypatch.setattr(kerberos, "import_module", lambda _: SimpleNamespace())
    given = [*KERBEROS, f"{KRB5} {option}='{tmp_path / 'none'}';"]

    async def main() -> None:
        async with connected(settings("127.0.0.1:1", from_flags(given))):
            raise AssertionError("somebody answered")

    with pytest.raises(LoginRefused, match=f"'{tmp_path / 'none'}' cannot be read: No such file"):
        asyncio.run(main())


def test_kerberos_login_says_that_gssapi_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(LoginRefused, match=r"gssapi cannot be loaded .* install the libraries"):
        KerberosLogin().get()


def amazon(monkeypatch: pytest.MonkeyPatch, *, credentials: object, region: str | None) -> None:
    """Install a fake botocore whose session has these."""
    session = SimpleNamespace(get_credentials=lambda: credentials, get_config_variable=lambda _: region)
    module = SimpleNamespace(Session=lambda: session)
    monkeypatch.setattr(logins, "find_spec", lambda _: object())
    monkeypatch.setattr(logins, "import_module", lambda _: module)


@pytest.mark.parametrize(
    ("credentials", "region", "says"),
    [(None, "eu-west-1", "no credentials of AWS"), (object(), None, "set AWS_DEFAULT_REGION")],
)
def test_settings_refuse_amazon_without_credentials_or_region(
    credentials: object, region: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    amazon(monkeypatch, credentials=credentials, region=region)
    with pytest.raises(InvalidInput, match=says):
        settings("h:1", from_flags(AMAZON))


def test_connect_says_why_a_login_could_not_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS without credentials: the library raises before it asks a broker."""
    tries: list[object] = []

    async def no_credentials(connection: object, *_: object, **__: object) -> None:
        tries.append(connection)
        raise ZeroDivisionError("Unable to locate credentials")

    monkeypatch.setattr("kafka.net.connection.KafkaConnection._sasl_authenticate", no_credentials)

    async def main() -> None:
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
        async with (
            EmbeddedCluster(1) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap, options=options)),
        ):
            raise AssertionError("somebody answered")

    with pytest.raises(LoginRefused, match="could not be tried: Unable to locate credentials"):
        asyncio.run(main())
    assert len(tries) == 1


def test_request_reports_why_a_later_connection_gets_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket that has expired meanwhile: the library opens that connection itself."""
    expired = False

    async def log_in(*_: object, **__: object) -> None:
        if expired:
            raise LoginRefused("the ticket has expired")

    monkeypatch.setattr("kafka.net.connection.KafkaConnection._sasl_authenticate", log_in)

    async def main() -> None:
        nonlocal expired
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI"}
        async with (
            EmbeddedCluster(3) as cluster,
            connected(ConnectionSettings(bootstrap=cluster.bootstrap, options=options)) as admin,
        ):
            expired = True
            for node in (await admin.describe_cluster()).nodes:
                await admin.api_versions(node.id)
            raise AssertionError("all brokers answered")

    with pytest.raises(LoginRefused, match="the ticket has expired"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=AWS_MSK_IAM"],
            "needs security.protocol=SASL_SSL",
        ),
        ([*AMAZON, "sasl.jaas.config=x.IAMLoginModule required awsProfileName='p4ss';"], "AWS_PROFILE"),
        ([*SASL, "sasl.mechanism=GSSAPI"], "set sasl.kerberos.service.name"),
        ([*KERBEROS, f"{KRB5} useKeyTab=true;"], "sasl.jaas.config: useKeyTab is true: .*keyTab"),
    ],
)
def test_settings_refuse_kerberos_and_amazon_without_their_requirements(given: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as told:
        settings("h:1", from_flags(given))
    assert "p4ss" not in str(told.value)
