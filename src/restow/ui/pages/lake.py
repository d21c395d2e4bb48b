"""What the lake says of a cluster: its load by hour of the week, and when something is full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from restow.html.heat import hour_name, week
from restow.html.page import Section, paragraph, section, table, titled
from restow.html.plots import amount
from restow.model.load import BYTES_IN, BYTES_OUT
from restow.sizes import human_bytes, human_rate
from restow.ui.frame import at
from restow.ui.pages.links import broker_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.ui.lake import LakeLook

_ROWS = 20
_NAMES = {BYTES_IN: "Bytes in", BYTES_OUT: "Bytes out"}


def lake_part(lake: LakeLook) -> str:
    """Return the sections; what is wrong with the lake, if something is."""
    parts = []
    if lake.wrong:
        parts.append(titled("Loads", *(paragraph(each, "bad") for each in lake.wrong)))
    if lake.findings is not None:
        parts += map(section, _sections(lake.findings.week, lake.findings.forecast))
    return "".join(parts)


def _sections(
    hours: Mapping[str, Sequence[float | None]], forecast: Sequence[Mapping[str, Any]]
) -> Iterator[Section]:
    drawn = [part for name, values in hours.items() for part in _week(name, values)]
    if drawn:
        note = "All partitions together, by hour of the week in UTC. An hour without samples is empty."
        yield Section(title="Hours of the week", note=note, parts=tuple(drawn))
    if forecast:
        note = "When log dirs and brokers reach their limits, the soonest first, with the range of the trend."
        yield Section(title="Forecast", note=note, parts=(_forecast(forecast),))


def _week(name: str, values: Sequence[float | None]) -> Iterator[str]:
    known = {hour: value for hour, value in enumerate(values) if value is not None}
    if not known:
        return
    most, least = max(known, key=known.__getitem__), min(known, key=known.__getitem__)
    told = (
        f"Most on {hour_name(most)}, {human_rate(known[most])}; least on {hour_name(least)}, "
        f"{human_rate(known[least])}; sampled in {len(known)} of {len(values)} hours."
    )
    title = _NAMES.get(name, name)
    yield f"<h3>{title}</h3>"
    yield paragraph(told)
    yield week(values, label=f"{title} by hour of the week. {told}")


def _forecast(rows: Sequence[Mapping[str, Any]]) -> str:
    from restow.pipeline.findings import note

    shown = [
        (
            broker_link(row["broker"]),
            row["measure"] if row["log_dir"] is None else f"{row['measure']} {row['log_dir']}",
            _amount(row, "now"),
            _amount(row, "limit"),
            _amount(row, "growth"),
            *(at(row[name], "date") for name in ("passes", "soonest", "latest")),
            note(row),
        )
        for row in rows
    ]
    heads = ("broker", "what", "now", "limit", "growth a day", "passes", "soonest", "latest", "why not")
    return table(heads, shown, left=2, most=_ROWS, caption="forecast")


def _amount(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if value is None:
        return "?"
    if row["measure"] == "disk":
        return human_bytes(value) if value >= 0 else f"−{human_bytes(-value)}"
    return amount(value, "B/s")
