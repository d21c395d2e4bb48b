"""Consumer groups: how far behind each is, who its members are and what they own."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.html.page import Markup, Tile, link, paragraph, table, tiles, titled
from restow.html.plots import meter
from restow.sizes import count, human_duration, some
from restow.ui.forms import search_form
from restow.ui.frame import Shown, address, at, live_parts, pager
from restow.ui.lists import paged
from restow.ui.pages.cluster import away_banner
from restow.ui.pages.links import broker_link, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.client import GroupLag
    from restow.client.values import GroupMember
    from restow.ui.watching import ClusterLook

_ROWS = 200
_NAMED = 6
SORTS = ("name", "lag", "time", "members")
_TIME = "Time is the age of the next record that the group has to read."


def groups_page(look: ClusterLook, search: str, sort: str, number: int) -> Shown:
    """Return the table of groups whose names contain what was searched for."""
    form = search_form("/groups", search, sort, SORTS)
    body = f"<section>{form}{live_parts(groups_parts(look, search, sort, number))}</section>"
    feed = address("/events", page="groups", search=search, sort=sort, number=number)
    return Shown(title="Groups", body=body, feed=feed)


def groups_parts(look: ClusterLook, search: str, sort: str, number: int) -> dict[str, str]:
    """Return its live part."""
    if look.groups is None:
        return {"groups": away_banner(look) + paragraph("No group has been seen yet.")}
    wanted = search.strip().lower()
    chosen = [each for each in look.groups.groups if wanted in each.group.name.lower()]
    found = paged(sorted(chosen, key=lambda each: _key(each, sort)), number, _ROWS)
    most = max((each.lag or 0 for each in look.groups.groups), default=0)
    rows = [_row(each, most) for each in found.rows]
    told = f"{found.total:,} of {count(len(look.groups.groups), 'group')}. {_TIME}"
    heads = ("group", "protocol", "state", "members", "partitions", "lag in messages", "lag in time")
    listed = table(heads, rows, left=3, caption="groups") if rows else ""
    turn = pager("/groups", found.number, found.pages, search=search, sort=sort)
    return {"groups": away_banner(look) + paragraph(told) + listed + turn}


def _key(group: GroupLag, sort: str) -> tuple[float, str]:
    sizes = {
        "lag": -(group.lag or 0),
        "time": -(group.lag_ms or 0),
        "members": -len(group.group.members),
    }
    return sizes.get(sort, 0), group.group.name


def _row(group: GroupLag, most: int) -> tuple[object, ...]:
    lag = group.lag
    bar = Markup("?") if lag is None else Markup(f"{lag:,}{meter(lag, most, f'{lag:,} messages')}")
    return (
        link(group.group.name, address("/group", name=group.group.name)),
        group.group.protocol,
        Markup(f"<span class='state-bad'>{_state(group)}</span>") if group.error else _state(group),
        f"{len(group.group.members):,}",
        f"{len(group.partitions):,}",
        bar,
        _time(group.lag_ms),
    )


def _state(group: GroupLag) -> str:
    return "not known" if group.error else group.group.state.lower()


def _time(age_ms: int | None) -> str:
    return "?" if age_ms is None else human_duration(age_ms / 1000)


def group_page(look: ClusterLook, name: str, number: int) -> Shown | None:
    """Return one group's page; None if there is none of that name."""
    if _find(look, name) is None:
        return None
    parts = group_parts(look, name, number)
    return Shown(
        title=f"Group {name}",
        body=live_parts(parts),
        feed=address("/events", page="group", name=name, number=number),
    )


def _find(look: ClusterLook, name: str) -> GroupLag | None:
    groups = () if look.groups is None else look.groups.groups
    return next((each for each in groups if each.group.name == name), None)


def group_parts(look: ClusterLook, name: str, number: int) -> dict[str, str]:
    """Return its live parts."""
    found = _find(look, name)
    if found is None or look.groups is None:
        return {"group": away_banner(look) + paragraph(f"there is no group {name!r} any more", "bad")}
    group = found.group
    wrong = paragraph(found.error, "bad") if found.error else ""
    about = (
        f"<p class='note'>Protocol {group.protocol}, assignor {escape(group.assignor or 'none')}, "
        f"coordinated by broker {broker_link(found.coordinator)}. As of {at(look.groups.at_ms)}. {_TIME}</p>"
    )
    members = [_member(each, found) for each in group.members]
    heads = ("member", "client", "host", "rack", "owns", "lag in messages")
    listed = table(heads, members, left=5, caption="members") if members else paragraph("It has no member.")
    return {
        "group": away_banner(look) + tiles(_tiles(found)) + about + wrong,
        "members": titled("Members", listed),
        "lags": _partitions(found, name, number),
    }


def _tiles(found: GroupLag) -> Iterator[Tile]:
    yield Tile(value=_state(found), name="state", kind="bad" if found.error else "")
    yield Tile(value="?" if found.lag is None else f"{found.lag:,}", name="messages behind")
    yield Tile(value=_time(found.lag_ms), name="behind in time, at most")
    yield Tile(value=f"{len(found.group.members):,}", name="members")
    unowned = sum(each.member is None for each in found.partitions)
    yield Tile(
        value=f"{unowned:,}",
        name="partitions without an owner",
        kind="bad" if unowned and found.group.members else "",
    )


def _member(member: GroupMember, found: GroupLag) -> tuple[object, ...]:
    lags = [each.lag for each in found.partitions if each.member is member and each.lag is not None]
    name = member.id if member.instance_id is None else f"{member.instance_id} ({member.id})"
    return (
        name,
        member.client_id,
        member.host,
        member.rack or "–",
        f"{count(len(member.held), 'partition')}: {some(member.held, _NAMED)}" if member.held else "nothing",
        f"{sum(lags):,}",
    )


def _partitions(found: GroupLag, name: str, number: int) -> str:
    shown = paged(
        sorted(found.partitions, key=lambda each: (-(each.lag or 0), each.partition)), number, _ROWS
    )
    most = max((each.lag or 0 for each in found.partitions), default=0)
    rows = [
        (
            partition_link(each.partition),
            "nobody" if each.member is None else each.member.id,
            "–" if each.committed is None else f"{each.committed:,}",
            "?" if each.latest is None else f"{each.latest:,}",
            "?"
            if each.lag is None
            else Markup(f"{each.lag:,}{meter(each.lag, most, f'{each.lag:,} messages')}"),
            _time(each.lag_ms),
        )
        for each in shown.rows
    ]
    heads = ("partition", "owner", "committed", "end", "lag in messages", "lag in time")
    turn = pager("/group", shown.number, shown.pages, name=name)
    return titled(
        "Partitions, the furthest behind first", table(heads, rows, left=2, caption="partitions"), turn
    )
