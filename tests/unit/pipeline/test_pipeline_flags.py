"""Text options of the pipeline: durations, Spark settings, logins."""

from __future__ import annotations

from pathlib import Path

import pytest

from restow.errors import InvalidInput
from restow.pipeline.address import DELTA, ICEBERG
from restow.pipeline.jars import JARS, KAFKA, NoSpark, jars_of
from restow.pipeline.sampling.where import Where
from restow.pipeline.session import (
    SMALL_BYTES,
    TASKS,
    conf_from,
    is_small,
    settings_for,
    with_jars,
    with_lake,
)
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
    assert is_small(f"delta:{tmp_path}")
    for elsewhere in ("s3a://bucket/lake", "delta:s3a://bucket/lake", "iceberg:lakes.kafka"):
        assert not is_small(elsewhere)
    with (files / "large.parquet").open("wb") as file:
        file.truncate(SMALL_BYTES + 1)
    assert not is_small(str(tmp_path))
    quick = settings_for("x", None, {}, small=True)
    assert quick["spark.sql.codegen.wholeStage"] == "false"
    assert quick["spark.sql.adaptive.enabled"] == "false"
    cores = settings_for("x", "local[3]", {}, small=True)
    assert (cores["spark.sql.shuffle.partitions"], cores[TASKS]) == ("3", "24")
    mine = {"spark.sql.codegen.wholeStage": "true"}
    assert settings_for("x", None, mine, small=True)["spark.sql.codegen.wholeStage"] == "true"
    for master in ("spark://host:7077", "yarn"):
        assert "spark.sql.codegen.wholeStage" not in settings_for("x", master, {}, small=True)


def test_submitted_session_keeps_its_master() -> None:
    assert "spark.master" not in settings_for("collect", None, {}, submitted=True)


def test_session_fetches_the_kafka_connector_only_if_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "restow.pipeline.session.jars_of", lambda kind: [Path(f"/{kind}/a.jar"), Path("/c/b.jar")]
    )
    assert with_jars({}, KAFKA)["spark.jars"] == "/kafka/a.jar,/c/b.jar"
    assert with_jars({"spark.jars": "/mine.jar"}, KAFKA)["spark.jars"] == "/mine.jar,/kafka/a.jar,/c/b.jar"
    for there in (
        {"spark.jars": "/jars/spark-sql-kafka-0-10_2.13-4.0.0.jar"},
        {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"},
    ):
        assert with_jars(there, KAFKA) == there


def test_session_gets_what_each_kind_of_lake_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restow.pipeline.session.jars_of", lambda kind: [Path(f"/{kind}.jar")])
    assert with_lake({"spark.master": "local[2]"}, "samples") == {"spark.master": "local[2]"}
    iceberg = with_lake({"spark.jars": "/mine.jar"}, "iceberg:lakes.kafka")
    assert iceberg == {
        "spark.jars": "/mine.jar,/iceberg.jar",
        "spark.sql.catalog.lakes.cache-enabled": "false",
    }
    cached = {"spark.sql.catalog.lakes.cache-enabled": "true", "spark.jars": "/iceberg-spark-runtime-9.jar"}
    assert with_lake(cached, "iceberg:lakes.kafka") == cached
    delta = with_lake({"spark.master": "local[2]", "spark.sql.extensions": "mine.Own"}, "delta:/lake")
    assert delta["spark.jars"] == "/delta.jar"
    assert delta["spark.sql.extensions"] == "mine.Own,io.delta.sql.DeltaSparkSessionExtension"
    assert delta["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert with_lake(delta, "delta:/lake") == delta
    both = with_lake(delta, "iceberg:lakes.kafka")
    assert both["spark.jars"] == "/delta.jar,/iceberg.jar"


def test_every_supported_release_has_one_connector() -> None:
    for release, modules in JARS[KAFKA].items():
        names = [module.split(":")[1] for module in modules]
        assert len(set(names)) == len(names)
        assert modules[0].startswith(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{release}.")


@pytest.mark.parametrize(
    ("kind", "release", "said"),
    [
        (KAFKA, "3.5", r"no Kafka connector for Spark 3\.5 yet, only for 4\.0, 4\.1, 4\.2"),
        (
            ICEBERG,
            "4.2",
            r"no Iceberg runtime for Spark 4\.2 yet, only for 4\.0, 4\.1: .*'pyspark==4\.1\.\*'",
        ),
        (DELTA, "4.2", r"no Delta runtime for Spark 4\.2 yet, only for 4\.0, 4\.1.*--conf spark\.jars"),
    ],
)
def test_release_of_spark_without_jars_is_named(
    kind: str, release: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restow.pipeline.jars.spark_release", lambda: release)
    with pytest.raises(NoSpark, match=said):
        jars_of(kind)


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


@pytest.mark.parametrize("mechanism", [{}, {"sasl.mechanism": "GSSAPI"}])
def test_connector_options_tell_java_to_use_the_ticket(mechanism: dict[str, str]) -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "kafka", **mechanism}
    ticket = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
    assert connector_options("b:1", given)["kafka.sasl.jaas.config"] == ticket
    own = {**given, "sasl.jaas.config": "its own"}
    assert connector_options("b:1", own)["kafka.sasl.jaas.config"] == "its own"
    for other in ({}, {"security.protocol": "SSL"}, {**given, "sasl.mechanism": "PLAIN"}):
        assert "kafka.sasl.jaas.config" not in connector_options("b:1", other)


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
