"""Faults in the cluster: a sequence chosen by a seed, each repaired before the next or later."""

from __future__ import annotations

import json
import random
import time
from functools import partial
from typing import TYPE_CHECKING

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from harness.brokers import SESSION_TIMEOUT_MS
from tests.faults.history import Kind, Op
from tests.seeds import seeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.brokers import BrokerProcess, BrokerProcesses
    from tests.faults.recording import Recorder

_ROOT = "/restow"
_LONG_S = SESSION_TIMEOUT_MS / 1000 * 1.3
_MOMENT_S = 0.5
_SHORT_S = SESSION_TIMEOUT_MS / 1000 * 0.4


class Nemesis:
    """Causes faults, and repairs everything in the end."""

    def __init__(self, brokers: BrokerProcesses, recorder: Recorder, seed: int) -> None:
        self._brokers = brokers
        self._recorder = recorder
        self._chance = random.Random(seeded(seed))

    def run(self, seconds: float) -> None:
        """Cause one fault after the other until the time is over; then repair everything.

        The first one always breaks a cluster that acknowledges too early.
        """
        faults: list[tuple[int, Callable[[], None]]] = [
            (3, self._kill_one),
            (3, self._kill_controller),
            (3, self._kill_all),
            (3, self._kill_the_one_awake),
            (2, partial(self._pause_one, _SHORT_S)),
            (2, partial(self._pause_one, _LONG_S)),
            (2, self._pause_controller),
            (1, self._stop_one),
            (1, partial(self._pause_zookeeper, _SHORT_S)),
            (1, self._restart_zookeeper),
        ]
        weights = [weight for weight, _ in faults]
        until_s = time.monotonic() + seconds
        fault = self._kill_the_one_awake
        while time.monotonic() < until_s:
            self._wait(0.3, 1.5)
            fault()
            if self._chance.random() < 0.7:
                self._wait(0.0, 2.0)
                self.heal()
            (_, fault) = self._chance.choices(faults, weights)[0]
        self.heal()

    def heal(self) -> None:
        """Start and resume all brokers."""
        self._note("heal")
        for broker in self._brokers.values():
            if broker.is_paused:
                broker.resume()
        self._brokers.start_all()

    def _kill_one(self) -> None:
        self._kill(self._any_running())

    def _kill_controller(self) -> None:
        self._kill(self._controller())

    def _kill_all(self) -> None:
        for broker in self._brokers.values():
            self._kill(broker)

    def _kill_the_one_awake(self) -> None:
        """Kill the only running broker, whose recent writes no other has: none may be acknowledged."""
        awake = self._any_running()
        asleep = [each for each in self._running() if each is not awake and not each.is_paused]
        for broker in asleep:
            self._note(f"pause {broker.id}")
            broker.pause()
        time.sleep(_MOMENT_S)
        self._kill(awake)
        for broker in asleep:
            self._note(f"resume {broker.id}")
            broker.resume()

    def _kill(self, broker: BrokerProcess | None) -> None:
        if broker is not None and broker.is_running:
            self._note(f"kill {broker.id}")
            broker.kill()

    def _stop_one(self) -> None:
        broker = self._any_running()
        if broker is not None and not broker.is_paused:
            self._note(f"stop {broker.id}")
            broker.stop()

    def _pause_one(self, seconds: float) -> None:
        self._pause(self._any_running(), seconds)

    def _pause_controller(self) -> None:
        self._pause(self._controller(), _LONG_S)

    def _pause(self, broker: BrokerProcess | None, seconds: float) -> None:
        """Pause a broker, and perhaps resume it only later."""
        if broker is None or not broker.is_running or broker.is_paused:
            return
        self._note(f"pause {broker.id}")
        broker.pause()
        time.sleep(seconds)
        if self._chance.random() < 0.7:
            self._note(f"resume {broker.id}")
            broker.resume()

    def _pause_zookeeper(self, seconds: float) -> None:
        self._note("pause zookeeper")
        with self._brokers.zookeeper.paused():
            time.sleep(seconds)

    def _restart_zookeeper(self) -> None:
        self._note("restart zookeeper")
        self._brokers.restart_zookeeper()

    def _any_running(self) -> BrokerProcess | None:
        running = self._running()
        return self._chance.choice(running) if running else None

    def _running(self) -> list[BrokerProcess]:
        return [broker for broker in self._brokers.values() if broker.is_running]

    def _controller(self) -> BrokerProcess | None:
        """Return the controller in ZooKeeper; any broker if there is none."""
        client = KazooClient(self._brokers.zookeeper.address, timeout=5)
        try:
            client.start(5)
            data, _ = client.get(f"{_ROOT}/controller")
            return self._brokers.get(json.loads(data)["brokerid"])
        except (KazooException, KazooTimeoutError):
            return self._any_running()
        finally:
            client.stop()
            client.close()

    def _wait(self, least_s: float, most_s: float) -> None:
        time.sleep(self._chance.uniform(least_s, most_s))

    def _note(self, what: str) -> None:
        self._recorder.note("nemesis", Op.FAULT, Kind.OK, value=what)
