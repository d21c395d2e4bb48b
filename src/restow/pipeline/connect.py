"""A session on a Spark Connect server: no Java on this side, and only the settings that a server takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput
from restow.pipeline.jars import NoSpark

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SCHEME = "sc://"
_ANSWERS_WITHIN_S = 20


def is_connect(spark: SparkSession) -> bool:
    """Return whether this session is one of a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def connected(url: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session of the server at this address, with these settings.

    Restow's package goes along; its dependencies must be installed where the server runs Python.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _wait_for(url)
    builder: Any = SparkSession.builder
    spark: SparkSession = builder.remote(url).create()
    try:
        for name, value in settings.items():
            try:
                spark.conf.set(name, value)
            except PySparkException as error:
                raise InvalidInput(
                    f"{name} cannot be set for a session of {url}: {str(error).splitlines()[0]} "
                    "Set it where the server is started"
                ) from None
    except BaseException:
        spark.stop()
        raise
    return spark


def _wait_for(url: str) -> None:
    """Raise an error if no server answers soon. Spark itself would try for ten minutes."""
    try:
        import grpc
        from pyspark.errors import PySparkException
        from pyspark.sql.connect.client.core import DefaultChannelBuilder
    except ImportError as error:
        raise NoSpark(f"Spark Connect is not installed ({error}): pip install 'restow[connect]'") from error
    try:
        channel = DefaultChannelBuilder(url).toChannel()
    except PySparkException as error:
        raise InvalidInput(f"--master {url!r} is not like sc://host:15002: {error}") from None
    try:
        grpc.channel_ready_future(channel).result(timeout=_ANSWERS_WITHIN_S)
    except grpc.FutureTimeoutError:
        raise NoSpark(
            f"no Spark Connect server answers at {url} within {_ANSWERS_WITHIN_S} s: start one there "
            "(start-connect-server.sh of Spark), or give another --master"
        ) from None
    finally:
        channel.close()
