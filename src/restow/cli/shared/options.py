"""Options that several commands share.

Options of one section of the help are the fields of a class, each with its flag. A command takes the whole
section as one parameter, and `flattened` puts the fields in its place before typer reads the signature:

    @section("Pace")
    class PaceOptions:
        hours: Annotated[str | None, typer.Option(metavar="22:00-06:00", help="…")] = None

    def command(*, plan: PlanFile, pace: PaceOptions, as_json: AsJson = False) -> None: ...

A section may have other sections as fields. An option that many commands have and that belongs to no section
(`Bootstrap`, `AsJson`) is an annotated type.
"""

from __future__ import annotations

from copy import copy
from dataclasses import MISSING, dataclass, fields
from functools import cache
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, dataclass_transform, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
_PANEL = "__help_panel__"


@dataclass_transform(frozen_default=True, kw_only_default=True)
def section(panel: str | None = None) -> Callable[[type[T]], type[T]]:
    """Make a class a section of options, under this heading of the help if they name no other."""

    def made(cls: type[T]) -> type[T]:
        setattr(cls, _PANEL, panel)
        return dataclass(frozen=True, kw_only=True)(cls)

    return made


def flattened(command: Callable[..., T]) -> Callable[..., T]:
    """Return the command with the fields of its sections as parameters of its own."""
    own = signature(command, eval_str=True).parameters
    if not any(hasattr(each.annotation, _PANEL) for each in own.values()):
        return command

    def flat(**values: Any) -> T:
        return command(**{name: _value(each.annotation, name, values) for name, each in own.items()})

    parameters = [each for given in own.values() for each in _spread(given)]
    flat.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _value(kind: Any, name: str, values: dict[str, Any]) -> Any:
    if not hasattr(kind, _PANEL):
        return values[name]
    return kind(**{each.name: _value(each.annotation, each.name, values) for each in _parameters(kind)})


def _spread(parameter: Parameter) -> Iterator[Parameter]:
    """Yield the parameter, or those of all fields if it is a section."""
    if hasattr(parameter.annotation, _PANEL):
        for each in _parameters(parameter.annotation):
            yield from _spread(each)
    else:
        yield parameter.replace(kind=Parameter.KEYWORD_ONLY)


@cache
def _parameters(kind: Any) -> tuple[Parameter, ...]:
    """Return one parameter for each field of a section."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for each in fields(kind):
        default = Parameter.empty if each.default is MISSING else each.default
        if each.default_factory is not MISSING:
            default = each.default_factory()
        annotation = _under(getattr(kind, _PANEL), hints[each.name])
        found.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    return tuple(found)


def _under(panel: str | None, annotation: Any) -> Any:
    """Return the option under this heading, unless it names one itself."""
    if panel is None or hasattr(annotation, _PANEL):
        return annotation
    [option] = annotation.__metadata__
    option = copy(option)
    option.rich_help_panel = option.rich_help_panel or panel
    return Annotated[annotation.__origin__, option]
