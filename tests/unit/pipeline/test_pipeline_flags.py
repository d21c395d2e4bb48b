"""Text options of the pipeline: durations, Spark settings, logins."""

from __future__ import annotations

from pathlib import Path

import pytest

from restow.errors import InvalidInput
from restow.pipeline.jars import CONNECTORS, NoSpark, connector_jars
from restow.pipeline.sampling.where import Where
from restow.pipeline.session import SMALL_BYTES, conf_from, is_small, settings_for, with_connector
from restow.pipeline.topic import connector_options
from restow.runtime.secrets import Secret
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


def test_small_lake_is_read_without_compiled_queries(tmp_path: Path) -> None:
    files = tmp_path / "replicas" / "v1" / "cluster=c"
    files.mkdir(parents=True)
    assert is_small(str(tmp_path))
    assert is_small(str(tmp_path / "not there yet"))
    assert not is_small("s3a://bucket/lake")
    with (files / "large.parquet").open("wb") as file:
        file.truncate(SMALL_BYTES + 1)
    assert not is_small(str(tmp_path))
    quick = settings_for("x", None, {}, small=True)
    assert quick["spark.sql.codegen.wholeStage"] == "false"
    mine = {"spark.sql.codegen.wholeStage": "true"}
    assert settings_for("x", None, mine, small=True)["spark.sql.codegen.wholeStage"] == "true"
    for master in ("spark://host:7077", "yarn"):
        assert "spark.sql.codegen.wholeStage" not in settings_for("x", master, {}, small=True)


def test_submitted_session_keeps_its_master() -> None:
    assert "spark.master" not in settings_for("collect", None, {}, submitted=True)


def test_session_fetches_the_kafka_connector_only_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "restow.pipeline.session.connector_jars", lambda: [Path("/c/a.jar"), Path("/c/b.jar")]
    )
    assert with_connector({})["spark.jars"] == "/c/a.jar,/c/b.jar"
    assert with_connector({"spark.jars": "/mine.jar"})["spark.jars"] == "/mine.jar,/c/a.jar,/c/b.jar"
    for there in (
        {"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.0.0.jar"},
        {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"},
    ):
        assert with_connector(there) == there


def test_every_supported_release_has_one_connector() -> None:
    for release, modules in CONNECTORS.items():
        names = [module.split(":")[1] for module in modules]
        assert len(set(names)) == len(names)
        assert modules[0].startswith(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{release}.")


def test_unknown_release_of_spark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restow.pipeline.jars.spark_release", lambda: "3.5")
    with pytest.raises(NoSpark, match=r"no Kafka connector for Spark 3\.5, only for 4\.0.*spark\.jars"):
        connector_jars()


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
