"""What could go wrong meanwhile: `broker 3 dies at 30%`.

broker 3 dies at 30%            when 30% of the bytes have been copied
broker 3 dies at 10m            ten minutes after the start
broker 3 comes back at 50%
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.sizes import milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.model import BrokerId, Snapshot
    from restow.rehearse.cluster import RehearsedCluster

_FAULT = re.compile(r"broker (?P<broker>\d{1,9}) (?P<what>dies|comes back) at (?P<when>\S+)", re.ASCII)
_SHARE = re.compile(r"(?P<percent>\d{1,3}(\.\d+)?)%", re.ASCII)


@frozen
class BrokerFault:
    """A broker that dies or comes back, at a time or when a share of all bytes has been copied."""

    broker: BrokerId
    dies: bool
    at_s: float = 0.0
    share: float | None = None

    @classmethod
    def parse(cls, text: str, flag: str = "--what-if") -> BrokerFault:
        """Read one fault; raise InvalidInput if it is not one."""
        found = _FAULT.fullmatch(" ".join(text.lower().split()))
        if found is None:
            raise InvalidInput(f'{flag}: {text!r} is not understood; write it like "broker 3 dies at 30%"')
        broker, dies, when = int(found["broker"]), found["what"] == "dies", found["when"]
        share = _SHARE.fullmatch(when)
        if share is None:
            return cls(broker=broker, dies=dies, at_s=milliseconds(when, flag) / 1000)
        if float(share["percent"]) > 100:
            raise InvalidInput(f"{flag}: {when} is more than all of it")
        return cls(broker=broker, dies=dies, share=float(share["percent"]) / 100)

    def timed(self, moment_of: Callable[[float], float]) -> BrokerFault:
        """Return the fault with its time, if it has only a share of the bytes."""
        return self if self.share is None else replace(self, at_s=moment_of(self.share), share=None)

    def happen(self, cluster: RehearsedCluster, detect_s: float) -> None:
        """Let it happen. A dead broker is noticed after a while."""
        if self.dies:
            cluster.die(self.broker, detect_s)
        else:
            cluster.come_back(self.broker)

    def __str__(self) -> str:
        when = f"{self.at_s:,.0f} s" if self.share is None else f"{self.share:.0%}"
        return f"broker {self.broker} {'dies' if self.dies else 'comes back'} at {when}"


def parse_faults(texts: Iterable[str], snapshot: Snapshot) -> tuple[BrokerFault, ...]:
    """Read faults; refuse brokers that are not there."""
    faults = tuple(BrokerFault.parse(text) for text in texts)
    for each in faults:
        if each.broker not in snapshot.broker:
            known = ", ".join(str(broker) for broker in sorted(snapshot.broker)[:10])
            raise InvalidInput(
                f"--what-if: there is no broker {each.broker} on this cluster; it has {known}"
                + (" and more" if len(snapshot.broker) > 10 else "")
            )
    return faults
