"""Apache Kafka 4.3.1 with TLS, client certificates, logins and ACLs; and how to connect."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.apache import apache_kafka
from harness.certificates import PASSWORD, Certificates, certificates
from harness.jars import KAFKA_4

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from harness.apache import Cluster

WORD = "s3cret; \\ \"quoted\" = 'ü'"
"""A password that both a property file and a login line have to escape."""
LISTENERS = {"TLS": "SSL", "CLEAR": "SASL_PLAINTEXT", "LOGIN": "SASL_SSL"}
_MODULES = "org.apache.kafka.common.security"
_SCRAM_MODULE = f"{_MODULES}.scram.ScramLoginModule"
_PLAIN_MODULE = f"{_MODULES}.plain.PlainLoginModule"


@dataclass(frozen=True, slots=True)
class Secured:
    """The cluster, and a client's credentials."""

    cluster: Cluster
    made: Certificates

    def trust(self) -> dict[str, str]:
        return {
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.made.trust_store),
            "ssl.truststore.password": PASSWORD,
        }


@contextmanager
def secured_kafka(folder: Path, nodes: int = 1) -> Iterator[Secured]:
    """Start a cluster with an open listener, whose clients may do everything, and those of `LISTENERS`.

    `root` may do everything too, and logs in with a password; `alice` may do nothing.
    """
    made = certificates(folder / "certificates")
    settings = _server_settings(made)
    with apache_kafka(
        folder, nodes=nodes, version=KAFKA_4, settings=settings, listeners=LISTENERS
    ) as cluster:
        _add_users(cluster.at["PLAINTEXT"])
        yield Secured(cluster, made)


def _server_settings(made: Certificates) -> dict[str, str]:
    settings = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(made.server_store),
        "ssl.keystore.password": PASSWORD,
        "ssl.key.password": PASSWORD,
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(made.trust_store),
        "ssl.truststore.password": PASSWORD,
        "listener.name.tls.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:root;User:CN=client",
    }
    for listener in ("clear", "login"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f'{_PLAIN_MODULE} required user_root="{PASSWORD}";'
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
    return settings


def _add_users(bootstrap: str) -> None:
    from kafka.admin import KafkaAdminClient, ScramMechanism, UserScramCredentialUpsertion

    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            for user in ("root", "alice"):
                target = UserScramCredentialUpsertion(user, mechanism, WORD)
                assert client.alter_user_scram_credentials([target]) == {user: None}
    finally:
        client.close()


def login(user: str, mechanism: str, protocol: str, password: str = WORD) -> dict[str, str]:
    """Return the properties of a client that logs in."""
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="{user}" password="{quoted}";',
    }


def property_file(folder: Path, properties: Mapping[str, str]) -> str:
    """Write the properties as Java would store them."""
    lines = []
    for name, value in properties.items():
        escaped = value.replace("\\", "\\\\")
        lines.append(f"{name}={escaped}")
    file = folder / "client.properties"
    file.write_text("\n".join(lines).encode("ascii", "backslashreplace").decode().replace("\\xfc", "\\u00fc"))
    return str(file)
