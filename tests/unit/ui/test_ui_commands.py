"""Forms make the arguments of commands, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from restow.cli.app import app
from restow.cli.plan.requests import COMMANDS
from restow.cli.ui.forms import command_line
from restow.errors import InvalidInput
from restow.ui.forms import command_fields

if TYPE_CHECKING:
    from restow.ui.commands import CommandForm

LINE = command_line(("-b", "host:1"), "journals", "load.parquet")


def command(*words: str) -> Any:
    found: Any = typer.main.get_command(app)
    for word in words:
        found = found.commands[word]
    return found


def parsed(form: CommandForm, arguments: list[str]) -> dict[str, Any]:
    """Return the parameters that the option parser makes of arguments."""
    made: dict[str, Any] = command(*form.words).make_context("restow", list(arguments)).params
    return made


@pytest.mark.parametrize("form", LINE.plans, ids=lambda form: form.name)
def test_every_kind_of_plan_offers_all_options_that_are_no_files(form: CommandForm) -> None:
    options = {
        each.name
        for each in command(*form.words).params
        if each.metavar not in ("FILE", "FOLDER", "PLAN")
        and each.name not in ("bootstrap", "form", "as_json")
    }
    assert {each.name for each in form.fields} == options - {"command_property"}
    html = command_fields(form, {})
    assert all(f"name='{each.name}'" in html for each in form.fields)


def test_every_plan_command_has_a_form() -> None:
    assert {form.name for form in LINE.plans} == COMMANDS.keys() - {"remove-brokers"}


def test_filled_form_becomes_the_command_line() -> None:
    given = {
        "brokers": "3,4",
        "balance": "yes",
        "max_bytes": "50GB",
        "band": "0.1\ndisk=0.05\n",
        "seed": "",
        "csrf": "x",
    }
    made = LINE.make_plan(LINE.plan_form("drain"), given, "to.json")[3:]
    assert made == [
        *("plan", "drain", "--balance", "--band=0.1", "--band=disk=0.05", "--max-bytes=50GB"),
        *("-b", "host:1", "--load", "load.parquet", "-o", "to.json", "--json", "--", "3,4"),
    ]
    params = parsed(LINE.plan_form("drain"), made[2:])
    assert (params["brokers"], params["balance"], params["band"]) == ("3,4", True, ["0.1", "disk=0.05"])


@pytest.mark.parametrize(
    "evil", ["--output=/etc/passwd", "-o/etc/passwd", "--journal=x", "-b evil:1", "; rm x", "$(id)"]
)
def test_values_never_become_flags(evil: str) -> None:
    form = LINE.plan_form("drain")
    made = LINE.make_plan(form, {"brokers": evil, "topics": evil, "band": f"{evil}\n{evil}"}, "to.json")[5:]
    params = parsed(form, made)
    assert (params["brokers"], params["topics"], params["band"]) == (evil, evil, [evil, evil])
    assert (params["output"], params["bootstrap"]) == ("to.json", "host:1")


def test_switch_that_is_on_by_default_is_turned_off_by_leaving_it_out() -> None:
    off = LINE.execute_plan({"throttle": "1MB/s"}, "p.json", "d")
    assert {"--no-elect", "--no-special-last"} <= set(off)
    on = LINE.execute_plan({"throttle": "1MB/s", "elect": "yes", "special_last": "yes"}, "p.json", "d")
    assert not {"--no-elect", "--elect", "--no-special-last"} & set(on)


def test_run_is_pinned_to_its_digest_and_asks_nobody() -> None:
    made = LINE.execute_plan(
        {"throttle": "50MB/s", "yes": "", "check": "yes", "digest": "other"}, "p.json", "sha256:1"
    )
    params = command("execute").make_context("restow", made[4:]).params
    assert (params["digest"], params["yes"], params["check"], params["plan"]) == (
        "sha256:1",
        True,
        False,
        "p.json",
    )


@pytest.mark.parametrize("given", [{}, {"brokers": "  "}, {"brokers": "3\x00"}, {"brokers": "3" * 3_000}])
def test_missing_or_absurd_values_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="brokers"):
        LINE.make_plan(LINE.plan_form("drain"), given, "to.json")


def test_unknown_kind_of_plan_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no kind of plan"):
        LINE.plan_form("../../etc")
