"""Text options of the pipeline: durations, Spark settings, logins."""

from __future__ import annotations

import pytest

from restow.client.secrets import Secret
from restow.errors import InvalidInput
from restow.pipeline.sampling.where import Where
from restow.pipeline.session import KAFKA_CONNECTOR, conf_from, settings_for
from restow.pipeline.topic import connector_options
from restow.sizes import milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("500ms", 500), ("30s", 30_000), ("1.5 m", 90_000), ("1h", 3_600_000), ("2d", 172_800_000)],
)
def test_milliseconds_parses_durations(text: str, expected: int) -> None:
    assert milliseconds(text, "--every") == expected


@pytest.mark.parametrize("text", ["", "30", "s", "-1s", "0s", "1e9s", "thirty seconds", "1.2.3s"])
def test_milliseconds_refuses_malformed_durations(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--every.*write it like"):
        milliseconds(text, "--every")


def test_local_session_uses_only_this_machine() -> None:
    found = settings_for("collect", "local[3]", {})
    assert found["spark.master"] == "local[3]"
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.sql.shuffle.partitions"] == "24"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_given_settings_override_the_defaults() -> None:
    found = settings_for("collect", None, {"spark.ui.enabled": "true", "spark.driver.memory": "8g"})
    assert found["spark.master"] == "local[*]"
    assert (found["spark.ui.enabled"], found["spark.driver.memory"]) == ("true", "8g")


def test_settings_for_a_cluster_bind_nothing_to_this_machine() -> None:
    found = settings_for("collect", "spark://host:7077", {})
    assert not [name for name in found if name.startswith("spark.driver")]


def test_submitted_session_keeps_its_master() -> None:
    assert "spark.master" not in settings_for("collect", None, {}, submitted=True)


def test_session_fetches_the_kafka_connector_only_if_it_is_missing() -> None:
    assert settings_for("x", None, {}, kafka=True)["spark.jars.packages"] == KAFKA_CONNECTOR
    mine = {"spark.jars.packages": "a:b:1"}
    assert settings_for("x", None, mine, kafka=True)["spark.jars.packages"] == f"a:b:1,{KAFKA_CONNECTOR}"
    there = {"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.0.0.jar"}
    assert "spark.jars.packages" not in settings_for("x", None, there, kafka=True)
    assert "spark.jars.packages" not in settings_for("x", None, {})


def test_conf_from_parses_command_line_settings() -> None:
    assert conf_from(["spark.a=1", "spark.b=x=y"]) == {"spark.a": "1", "spark.b": "x=y"}
    for wrong in ("spark.a", "a=1"):
        with pytest.raises(InvalidInput, match="--conf"):
            conf_from([wrong])


def test_connector_options_turn_a_login_into_jaas() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": Secret('a "word"'),
    }
    found = connector_options("b:1", given)
    assert found["kafka.bootstrap.servers"] == "b:1"
    assert found["kafka.security.protocol"] == "SASL_SSL"
    assert found["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="a \\"word\\"";'
    )
    assert not {"kafka.sasl.username", "kafka.sasl.password"} & found.keys()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "which cluster"),
        ({"bootstrap.servers": "b:1", "every": "soon"}, "every.*is not a duration"),
        ({"bootstrap.servers": "b:1", "securty.protocol": "SSL"}, "did you mean security.protocol"),
        ({"bootstrap.servers": "b:1", "sasl.password": "x"}, "security.protocol is PLAINTEXT"),
    ],
)
def test_source_refuses_wrong_options(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        Where(options, ("replicas",), "restow.replicas")


def test_source_options_hide_secrets() -> None:
    options = {
        "bootstrap.servers": "b:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "hush",
    }
    where = Where(options, ("replicas",), "restow.replicas")
    assert "hush" not in repr(where)
    assert "hush" not in repr(where.settings())
