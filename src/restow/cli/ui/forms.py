"""The options of commands as fields of forms, so that pages offer what the commands offer."""

from __future__ import annotations

from typing import Any

import typer

from restow.cli.plan.requests import COMMANDS as PLAN_COMMANDS
from restow.ui.commands import CommandField, CommandForm, CommandLine

_FILES = ("FILE", "FOLDER", "PLAN")
_SET_BY_THE_SERVER = (
    *("bootstrap", "command_config", "command_property"),
    *("form", "as_json", "yes", "check", "digest", "run"),
)


def command_line(
    cluster: tuple[str, ...], journal: str, load: str | None, snapshot: tuple[str, ...] = ()
) -> CommandLine:
    """Return how pages call commands on a cluster, which the flags lead to, or on a snapshot in a file."""
    from restow.cli.app import app

    root = typer.main.get_command(app)
    plans = [name for name in PLAN_COMMANDS if name != "remove-brokers"]  # another name of drain
    return CommandLine(
        plans=tuple(_form(root, "plan", name) for name in plans),
        rehearse=_form(root, "rehearse"),
        execute=_form(root, "execute", required="throttle"),
        cluster=cluster,
        snapshot=snapshot or cluster,
        journal=("--journal", journal),
        load=() if load is None else ("--load", load),
    )


def _form(root: Any, *words: str, required: str = "") -> CommandForm:
    """Return the form of a command. `required` names an option that it demands without saying so itself."""
    command = root
    for word in words:
        command = command.commands[word]
    fields = tuple(
        _field(each, required=each.required or each.name == required)
        for each in command.params
        if each.metavar not in _FILES and each.name not in _SET_BY_THE_SERVER and not each.hidden
    )
    return CommandForm(words=words, about=command.short_help or "", fields=fields)


def _field(param: Any, *, required: bool) -> CommandField:
    is_option = param.param_type_name == "option"
    is_switch = bool(getattr(param, "is_flag", False))
    default = "" if param.default in (None, False, True, []) else str(param.default)
    return CommandField(
        name=param.name,
        flag=param.opts[0] if is_option else "",
        about=param.help or "",
        example=param.metavar or "",
        section="" if param.name == "throttle" else getattr(param, "rich_help_panel", None) or "",
        is_switch=is_switch,
        off=param.secondary_opts[0] if is_switch and param.secondary_opts else "",
        default=("yes" if param.default else "") if is_switch else default,
        required=required,
        many=bool(getattr(param, "multiple", False)) or param.nargs == -1,
    )
