"""SIGTERM while the cluster does not answer: the run ends, and its journal has the outcome."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from harness.process import last_words, running
from restow.execute.journal.journal import read_journal
from restow.runtime.disk import SystemDisk
from tests.clients.embedded import wait_until
from tests.clients.test_embedded_ctrl_c import SLOWLY, WAIT_S, prepared

if TYPE_CHECKING:
    from pathlib import Path

FOR_EVER_MS = 3_600_000
"""A request that waits this long would outlast the test's timeout."""


def test_sigterm_ends_a_run_and_a_watch_whose_request_hangs(tmp_path: Path) -> None:
    log, plan = tmp_path / "cluster.log", tmp_path / "plan.json"
    log.write_text("")
    up = [sys.executable, "-m", "restow", "cluster", "up", "--brokers", "3", "--port", "0", "--json"]
    up += ["--data", str(tmp_path / "data")]  # it is killed, so it cannot remove a temporary folder
    with running(up, log) as cluster:

        def said() -> list[str]:
            return [line for line in log.read_text().splitlines() if line.startswith("{")]

        def is_up() -> bool:
            assert cluster.poll() is None, last_words(log)
            return bool(said())

        wait_until(is_up, "the cluster")
        bootstrap = json.loads(said()[0])["bootstrap_servers"]
        asyncio.run(prepared(bootstrap, plan))
        where = ("-b", bootstrap, "--command-property", f"request.timeout.ms={FOR_EVER_MS}")
        how = ("--yes", "--throttle", SLOWLY, "--journal", str(tmp_path / "state"), "--json")
        command = [sys.executable, "-m", "restow", "execute", str(plan), *how, *where]
        watching = [sys.executable, "-m", "restow", "watch", "--keep-on", "--json", *where]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run,
            subprocess.Popen(watching, stdout=subprocess.PIPE, text=True) as watch,
        ):
            try:
                assert watch.stdout is not None
                assert json.loads(watch.stdout.readline())["offline"] == 0
                assert run.stdout is not None
                folder = ""
                for line in run.stdout:
                    event = json.loads(line)
                    folder = event.get("folder", folder)
                    if event["event"] == "progress" and event["under_way"]:
                        break
                os.killpg(cluster.pid, signal.SIGSTOP)
                run.send_signal(signal.SIGTERM)
                rest, _ = run.communicate(timeout=WAIT_S)
                watch.send_signal(signal.SIGTERM)
                watch.communicate(timeout=WAIT_S)
            finally:
                run.kill()
                watch.kill()
        assert watch.returncode == 0
        assert run.returncode == 1
        ended = json.loads(rest.splitlines()[-1])
        assert (ended["event"], ended["outcome"]) == ("ended", "left running")
        assert "did not answer in time" in ended["reason"]
        assert ended["summary"]["partitions_left"] == 1
        last = read_journal(SystemDisk(), folder)[-1]
        assert (last.kind, last.facts["outcome"]) == ("ended", "left running")
