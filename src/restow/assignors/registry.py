"""The known assignors: our own, registered ones, and those of installed packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.assignors.base import Assignor
from restow.assignors.lag_aware import LagAware
from restow.assignors.range import Range
from restow.assignors.round_robin import RoundRobin
from restow.assignors.sticky import CooperativeSticky, Sticky
from restow.assignors.uniform import RackUniform, Uniform
from restow.errors import AssignorFailed, UnknownAssignor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "restow.assignors"

_known: dict[str, Assignor] = {
    a.name: a
    for a in (Range(), RoundRobin(), Sticky(), CooperativeSticky(), Uniform(), RackUniform(), LagAware())
}


def register(assignor: Assignor | type[Assignor]) -> None:
    """Register an assignor under its name; a later one of the same name replaces it."""
    instance = _instance(assignor, repr(assignor))
    _known[instance.name] = instance


def get(name: str) -> Assignor:
    """Return the assignor of that name; look in installed packages only for unknown names."""
    if name not in _known:
        for entry in _plugged_in():
            if entry.name == name:
                _load(entry)
    try:
        return _known[name]
    except KeyError:
        raise UnknownAssignor(f"no assignor is called {name!r}; there are {', '.join(names())}") from None


def names() -> tuple[str, ...]:
    """Return all names, our own first."""
    return tuple(dict.fromkeys((*_known, *(entry.name for entry in _plugged_in()))))


def _plugged_in() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # reads every installed package's metadata

    return tuple(entry_points(group=ENTRY_POINTS))


def _load(entry: EntryPoint) -> None:
    what = f"assignor {entry.name!r} ({entry.value})"
    try:
        loaded = entry.load()
    except Exception as error:
        raise AssignorFailed(f"{what} cannot be loaded: {error}") from error
    instance = _instance(loaded, what)
    if instance.name != entry.name:
        raise AssignorFailed(f"{what} calls itself {instance.name!r}: the names must agree")
    _known[instance.name] = instance


def _instance(given: object, what: str) -> Assignor:
    """Return an assignor from a plugin's object; refuse anything else."""
    try:
        instance = given() if isinstance(given, type) else given
    except Exception as error:
        raise AssignorFailed(f"{what} cannot be made: {error}") from error
    if not isinstance(instance, Assignor) or not isinstance(getattr(instance, "name", None), str):
        raise AssignorFailed(
            f"{what} is not an assignor: derive it from restow.assignors.Assignor and give it a name"
        )
    return instance
