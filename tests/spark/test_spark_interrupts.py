"""Ctrl-C while Spark starts or works: it ends at once and silently, and leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from uuid import uuid4

import psutil
import pytest

from harness.java import java
from tests.conftest import needs_kafka
from tests.often import often
from tests.spark.patience import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.classic]

PATIENCE_S = 300
MARK = "RESTOW_TEST_MARK"
QUICK = """
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""
AGAIN = """
with session("test", master="local[1]", conf=QUICK) as spark:
    print(spark.range(3).count(), flush=True)
"""
AT_WORK = """
import signal
from restow.pipeline.session import session

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with session("test", master="local[1]", conf=QUICK) as spark:
        print("begun", flush=True)
        while True:
            spark.range(3).isEmpty()
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
AT_ITS_START = """
import os, signal
from pyspark import java_gateway
from restow.pipeline.session import session

start = java_gateway.Popen

def interrupted(*words, **options):
    java_gateway.Popen = start
    process = start(*words, **options)
    os.kill(os.getpid(), signal.SIGINT)
    return process

java_gateway.Popen = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with session("test", master="local[1]", conf=QUICK):
        print("begun", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
AS_IT_CONNECTS = """
import os, signal
from pyspark import SparkContext
from restow.pipeline.session import session

connect = SparkContext._do_init

def interrupted(*words, **options):
    SparkContext._do_init = connect
    connect(*words, **options)
    os.kill(os.getpid(), signal.SIGINT)

SparkContext._do_init = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    with session("test", master="local[1]", conf=QUICK):
        print("begun", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def left_of(mark: str) -> list[int]:
    """Return the processes that have the mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                found.append(process.pid)
    return found


@pytest.mark.parametrize(
    "work",
    often([AT_WORK, AT_ITS_START, AS_IT_CONNECTS], AT_WORK),
    ids=["at work", "at its start", "as it connects"],
)
def test_ctrl_c_ends_the_session_and_leaves_no_process(work: str) -> None:
    """The next session must work."""
    with needs_kafka():
        java()
    mark = str(uuid4())
    with subprocess.Popen(
        [sys.executable, "-c", QUICK + work + AGAIN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: mark},
    ) as program:
        try:
            if work is AT_WORK:
                assert program.stdout is not None
                assert program.stdout.readline() == "begun\n"
                program.send_signal(signal.SIGINT)
            out, complaints = program.communicate(timeout=PATIENCE_S)
        finally:
            program.kill()
    assert (out, complaints, program.returncode) == ("interrupted\n3\n", "", 0)
    wait_for(lambda: not left_of(mark), "nothing is left")
