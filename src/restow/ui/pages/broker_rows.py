"""Brokers as rows of a table: log dirs, sizes, rates and counts, each as a number and a bar."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.html.page import Markup, table
from restow.html.plots import meter
from restow.sizes import human_bytes, human_rate
from restow.ui.pages.links import broker_link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.ui.sums import BrokerSum, ClusterSums, LogDirSum

_NEARLY_FULL = 0.9


def broker_table(brokers: Sequence[BrokerSum], sums: ClusterSums, caption: str) -> str:
    """Return a table of some brokers. The bars compare with the largest of all brokers."""
    measures: list[tuple[str, Callable[[BrokerSum], float | None], Callable[[float], str]]] = [
        ("bytes", lambda each: each.size_bytes, human_bytes),
        ("leaders", lambda each: each.leaders, "{:,}".format),
        ("replicas", lambda each: each.replicas, "{:,}".format),
    ]
    if any(each.bytes_in is not None for each in sums.brokers):
        measures.append(("bytes in", lambda each: each.bytes_in, human_rate))
    if any(each.bytes_out is not None for each in sums.brokers):
        measures.append(("bytes out", lambda each: each.bytes_out, human_rate))
    most = [max((value(each) or 0 for each in sums.brokers), default=0) for _, value, _ in measures]
    fullest = max((each.size_bytes or 0 for each in sums.brokers), default=0)
    rows = [
        (
            broker_link(each.id),
            _state(each),
            Markup("".join(_log_dir(found, fullest) for found in each.log_dirs) or "–"),
            *(
                _measure(value(each), limit, told)
                for (_, value, told), limit in zip(measures, most, strict=True)
            ),
            Markup(f"<span class='state-bad'>{each.out_of_sync:,}</span>") if each.out_of_sync else "0",
        )
        for each in brokers
    ]
    heads = ("broker", "state", "log dirs", *(name for name, _, _ in measures), "out of sync")
    return table(heads, rows, left=3, caption=caption)


def _measure(value: float | None, most: float, told: Callable[[float], str]) -> Markup:
    if value is None:
        return Markup("?")
    return Markup(f"{told(value)}{meter(value, most, told(value))}")


def _state(broker: BrokerSum) -> Markup:
    kind = "state-bad" if broker.state in ("down", "log dir failed") else ""
    kind = kind or ("state-warn" if broker.state == "cordoned" else "")
    role = "<br><small>controller</small>" if broker.is_controller else ""
    return Markup(f"<span class='state {kind}'>{broker.state}</span>{role}")


def _log_dir(found: LogDirSum, most: int) -> str:
    """Return a log dir as a bar: of its file system, or of the fullest broker if that is not known."""
    if found.failed:
        return f"<span class='state-bad'>failed</span> {_path(found.path)}"
    cordoned = " <span class='state-warn'>cordoned</span>" if found.cordoned else ""
    total = found.total_bytes
    if total:
        used = total - (found.usable_bytes or 0)
        words = f"{human_bytes(found.size_bytes)}, {used / total:.0%} of {human_bytes(total)} used"
        kind = "much" if used > _NEARLY_FULL * total else "plain"
        return f"{meter(used, total, words, kind)}{words}{cordoned} {_path(found.path)}"
    words = human_bytes(found.size_bytes)
    return f"{meter(found.size_bytes, most, words)}{words}{cordoned} {_path(found.path)}"


def _path(path: str) -> str:
    return f"<span class='path dir'>{escape(path)}</span>"
