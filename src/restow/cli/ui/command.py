"""`restow ui`: pages in the browser, for one cluster."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from restow.cli.runs.flags import JournalFolder
from restow.cli.shared.connection import OptionalBootstrap, connection_flags, settings_for
from restow.cli.shared.frame import Answer, show
from restow.cli.shared.options import section
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from restow.ui.commands import CommandLine
    from restow.ui.sessions import UiRole
    from restow.ui.site import UiSettings
    from restow.ui.watching import WatchedCluster

    Shown: TypeAlias = tuple[UiSettings, WatchedCluster, CommandLine]

ABOUT = "Show the cluster and its runs in the browser."
HELP = """Show the cluster, its topics and all runs in the browser, live; plan, rehearse and run there.

The command runs until ctrl-C. It prints an address with a token. Opening it exchanges the token for a cookie;
a second token is for people who may only look. Only this machine reaches the pages, unless --host says
otherwise; then TLS is required. --snapshot shows a snapshot instead of a cluster, and --demo a finished story
that comes with Restow: plans and rehearsals work there, runs do not.

\b
Examples:
  $ restow ui --demo
  $ restow ui -b localhost:9092
  $ restow ui --lake lake -b localhost:9092
  $ restow ui --read-only --no-browser --port 0 -b localhost:9092
  $ restow ui --host 0.0.0.0 --name ops.example.com --tls-certificate server.pem \\
      --tls-key server.key -b localhost:9092
"""


@section("What is shown")
class ShownOptions:
    """What the pages show."""

    snapshot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Show a file of `restow snapshot` instead.")
    ] = None
    demo: Annotated[bool, typer.Option("--demo", help="Show a finished story, without any cluster.")] = False
    lake: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The lake of `restow collect`: shows hours of the week and forecasts."
        ),
    ] = None
    load: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The load model of `restow pipeline run`, for plans and rehearsals."
        ),
    ] = None


@section("Network")
class NetworkOptions:
    """Where the pages are, and under which names."""

    host: Annotated[str, typer.Option(help="Address to listen on; others than loopback need TLS.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0: a free one.")] = 8080
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST[:PORT]",
            help="Another name that browsers reach it by; repeatable. Requests for other names are refused.",
        ),
    ] = None
    tls_certificate: Annotated[
        str | None, typer.Option(metavar="FILE", help="Certificate chain of the server (PEM).")
    ] = None
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="Its private key (PEM).")] = None


def command(
    *,
    bootstrap: OptionalBootstrap = None,
    shown: ShownOptions,
    journal: JournalFolder = None,
    network: NetworkOptions,
    read_only: Annotated[bool, typer.Option("--read-only", help="Let nobody change anything.")] = False,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="When ready, print address and tokens as one line of JSON.")
    ] = False,
) -> None:
    from restow.client import hush

    hush()
    _check_installed()
    from restow.execute.journal.runs import state_folder
    from restow.ui.site import UiSettings

    if shown.demo and (shown.snapshot or journal or shown.lake or shown.load):
        raise InvalidInput("--demo shows its own story: leave out --snapshot, --journal, --lake and --load")
    settings = UiSettings(
        tokens=_tokens(read_only=read_only),
        journal=str(journal or state_folder(os.environ)),
        host=network.host,
        port=network.port,
        names=tuple(network.name or ()),
        lake=shown.lake,
        load=shown.load,
        read_only=read_only,
        certificate=network.tls_certificate,
        key=network.tls_key,
    )
    with TemporaryDirectory(prefix="restow-ui-") as folder:
        told = _told_story(settings, folder) if shown.demo else _source(settings, bootstrap, shown.snapshot)
        _serve(*told, folder, as_json=as_json, browser=browser)


def _source(settings: UiSettings, bootstrap: str | None, snapshot: str | None) -> Shown:
    """Return what is shown: a file if there is one, because the cluster may be from the environment."""
    from restow.cli.ui.forms import command_line
    from restow.ui.recorded import RecordedCluster
    from restow.ui.watching import LiveCluster

    if snapshot is not None:
        path = str(Path(snapshot).absolute())
        recorded = RecordedCluster(path)
        recorded.snapshot()  # a file that is none is said here, not on a page
        commands = command_line((), settings.journal, settings.load, ("--snapshot", path))
        return settings, recorded, commands
    if bootstrap is None:
        raise InvalidInput(
            "say where the cluster is: --bootstrap-server HOST:PORT, --snapshot FILE, or --demo for a story"
        )
    flags = ("-b", bootstrap, *connection_flags())
    source = LiveCluster(settings_for(bootstrap), settings.journal)
    return settings, source, command_line(flags, settings.journal, settings.load)


def _told_story(settings: UiSettings, folder: str) -> Shown:
    from restow.cli.ui.forms import command_line
    from restow.ui.recorded import (
        GROUPS,
        LAKE,
        LOAD,
        SNAPSHOT,
        STATE,
        RecordedCluster,
        read_groups,
        unpack_story,
    )

    unpack_story(folder)
    root = Path(folder)
    path = str(root / SNAPSHOT)
    settings = replace(
        settings, journal=str(root / STATE), load=str(root / LOAD), recorded_lake=str(root / LAKE)
    )
    source = RecordedCluster(path, read_groups(root / GROUPS))
    return settings, source, command_line((), settings.journal, settings.load, ("--snapshot", path))


def _check_installed() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise InvalidInput("restow ui needs two libraries more: pip install 'restow[ui]'") from None
    del starlette, uvicorn


def _tokens(*, read_only: bool) -> dict[str, UiRole]:
    from restow.ui.sessions import UiRole, new_token

    viewer = {new_token(): UiRole.VIEWER}
    return viewer if read_only else {new_token(): UiRole.OPERATOR, **viewer}


def _serve(
    settings: UiSettings,
    source: WatchedCluster,
    commands: CommandLine,
    folder: str,
    *,
    as_json: bool,
    browser: bool,
) -> None:
    from restow.cli.shared.signals import told_to_stop
    from restow.runtime.loop import run
    from restow.ui.server import serve

    async def main() -> None:
        def ready(listens: UiSettings) -> None:
            show(_told(listens, as_json=as_json))
            if browser and not as_json and sys.stdout.isatty():
                _open(_links(listens)[0][1], Path(folder))

        with told_to_stop() as told:
            await serve(settings, source, ready, told, commands)

    run(main())


def _links(settings: UiSettings) -> list[tuple[UiRole, str]]:
    """Return the addresses with their tokens, of the highest role first. The part after # is not sent."""
    scheme = "https" if settings.tls else "http"
    host = settings.names[0] if settings.names else settings.host
    host = host if ":" in host.rpartition("]")[2] else f"{host}:{settings.port}"
    found = [(role, f"{scheme}://{host}/login#token={token}") for token, role in settings.tokens.items()]
    return sorted(found, reverse=True)


def _told(settings: UiSettings, *, as_json: bool) -> Answer:
    links = _links(settings)

    def draw(console: Console) -> None:
        for role, link in links:
            console.print(f"{role.name.lower():<9} {link}", soft_wrap=True)
        console.print("The tokens are shown only here. ctrl-C ends the server; runs go on without it.")

    return Answer(
        document=lambda: {
            "address": links[0][1].partition("/login")[0],
            "port": settings.port,
            "tokens": {role.name.lower(): link.partition("#token=")[2] for role, link in links},
        },
        draw=draw,
        as_json=as_json,
    )


def _open(link: str, folder: Path) -> None:
    """Open the browser on a file of ours that leads there: other users may read the arguments of programs."""
    import webbrowser
    from html import escape

    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(f"<meta http-equiv='refresh' content='0; url={escape(link)}'>", encoding="utf-8")
    webbrowser.open(page.as_uri())
