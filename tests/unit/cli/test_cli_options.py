"""Sections of options: their fields become options of the command, under the section's heading."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from restow.cli.shared.options import flattened, section


@section("Colours")
class Paint:
    """A section under a heading."""

    colour: Annotated[str, typer.Option(help="Which.")] = "red"
    coats: Annotated[int, typer.Option(rich_help_panel="Elsewhere")] = 1
    names: Annotated[list[str], typer.Option()] = field(default_factory=list)


@section()
class Job:
    """A section in which there is another one."""

    paint: Paint
    fast: Annotated[bool, typer.Option("--fast")] = False


def painted(what: Annotated[str, typer.Argument()], job: Job, again: bool = False) -> None:
    typer.echo(f"{what} {job.paint.colour} {job.paint.coats} {job.paint.names} {job.fast} {again}")


def application() -> typer.Typer:
    app = typer.Typer()
    app.command()(flattened(painted))
    return app


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["wall"], "wall red 1 [] False False"),
        (
            ["wall", "--colour", "blue", "--coats", "2", "--fast", "--again", "--names", "a", "--names", "b"],
            "wall blue 2 ['a', 'b'] True True",
        ),
    ],
)
def test_command_gets_its_sections_with_the_values_of_the_options(arguments: list[str], told: str) -> None:
    found = CliRunner().invoke(application(), arguments)
    assert found.exit_code == 0, found.output
    assert found.output.strip() == told


def test_options_stand_under_the_heading_of_their_section() -> None:
    panels = {each.name: each.rich_help_panel for each in typer.main.get_command(application()).params}  # type: ignore[attr-defined]
    assert panels["colour"] == panels["names"] == "Colours"
    assert panels["coats"] == "Elsewhere"
    assert panels["fast"] is None


def test_two_options_with_one_name_are_refused() -> None:
    def twice(paint: Paint, colour: str = "") -> None: ...

    with pytest.raises(ValueError, match="colour"):
        flattened(twice)


def test_command_without_sections_stays_as_it_is() -> None:
    def plain(name: str) -> None: ...

    assert flattened(plain) is plain
