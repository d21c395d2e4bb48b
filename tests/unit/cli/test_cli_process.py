"""The program as a process: exit codes, streams, pipes, signals, environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer import TyperException
from typer.main import get_command

import restow
from restow.assignors import Assignor, register
from restow.cli import app, run

PLACE = ("place", "--brokers", "0-5", "--partitions", "12", "--replication-factor", "3", "--start-index", "0")
NEED_NO_CLUSTER = ("place", "groups assign", "groups simulate", "groups assignors")
PROGRAM = (sys.executable, "-c", "from restow.cli import main; main()")


def test_installed_program_prints_its_version() -> None:
    program = Path(sys.executable).with_name("restow")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"restow {restow.__version__}\n"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_program_without_a_command_prints_help(capsys, arguments) -> None:
    assert run(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "place" in said.out
    assert "groups" in said.out


def test_help_lists_every_command_once(invoke) -> None:
    listed = [line.split()[0] for line in invoke("--help").stdout.splitlines() if re.match(r"  [a-z]", line)]
    commands = [name for name, each in get_command(app).commands.items() if not each.hidden]
    assert sorted(listed) == sorted(commands)


def nouns_and_verbs() -> list[tuple[str, ...]]:
    """Yield every command and every group of commands."""
    found: list[tuple[str, ...]] = [()]
    for name, command in get_command(app).commands.items():
        found += [(name,), *((name, verb) for verb in getattr(command, "commands", ()))]
    return found


def understood(words: list[str]) -> dict[str, object]:
    """Parse a command line without running it; raise an error if the parser refuses it."""
    command, context = get_command(app), None
    while True:
        context = command.make_context(words[0] if words else "restow", words, parent=context)
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        if not hasattr(command, "resolve_command") or not rest:
            return context.params
        _, command, words = command.resolve_command(context, rest)


@pytest.mark.parametrize(
    "words", [["nonesuch"], ["groups", "nonesuch"], ["broker", "--nonesuch"], ["broker"]]
)
def test_understood_raises_for_unknown_words(words: list[str]) -> None:
    with pytest.raises(TyperException):
        understood(words)


@pytest.mark.parametrize("command", nouns_and_verbs(), ids=" ".join)
def test_help_has_examples_that_run(invoke, command, tmp_path, monkeypatch) -> None:
    text = invoke(*command, "--help").stdout
    assert "Examples:" in text
    assert max(map(len, text.splitlines())) <= 100
    examples = text.replace("\\\n", " ").splitlines()
    prompts = [line.strip() for line in examples if line.strip().startswith("$ restow ")]
    commands = [shlex.split(line.removeprefix("$ restow ")) for line in prompts]
    assert commands
    monkeypatch.chdir(tmp_path)
    Path("topic.yaml").write_text("brokers: 0-5\npartitions: 6\nreplication_factor: 2\n")
    Path("group.yaml").write_text("partitions: {orders: 4}\nmembers: [{id: c1}, {id: c2}]\n")
    for words in commands:
        call, file = (words[:-2], words[-1]) if ">" in words else (words, None)
        connects = {"-b", "--bootstrap-server"} & set(words)
        if connects or not " ".join(words).startswith(NEED_NO_CLUSTER):
            assert understood(call) is not None
            continue
        result = invoke(*call)
        assert result.exit_code == 0, words
        if file is not None:
            Path(file).write_text(result.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonesuch",),
        ("place", "--nonesuch"),
        ("place", "--partitions", "many"),
        ("place", "--rack-mode", "sometimes"),
        ("place", "--brokers"),
        ("place", "a.yaml", "b.yaml"),
        ("groups", "nonesuch"),
        ("place", "--brokers", "0-2", "-p", "1", "-r", "9"),
        ("groups", "assign", "missing.yaml"),
    ],
)
def test_wrong_usage_exits_with_code_2(capsys, arguments) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Error: " in said.err
    assert "Traceback" not in said.err


def test_process_exits_with_the_code_and_streams_of_its_command(spawn) -> None:
    done = spawn("place", "--nonesuch")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error: " in done.stderr


def test_debug_shows_the_traceback(spawn) -> None:
    done = spawn("--debug", "place", "--brokers", "x")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "InvalidBrokers" in done.stderr


class Broken(Assignor):
    """Raises an error when used."""

    name = "broken"

    def assign(self, partitions, members, partition_racks=None):
        raise ZeroDivisionError("oh dear")


def test_unexpected_error_prints_one_message(invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restow.assignors.registry._known", {})
    register(Broken())
    result = invoke("groups", "assign", "-a", "broken", "--topics", "t=1", "--members", "a")
    assert result.exit_code == 1
    assert "oh dear" in result.stderr
    assert "Traceback" not in result.stderr


def test_json_prints_one_document_only(spawn) -> None:
    done = spawn(*PLACE, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    assert len(json.loads(done.stdout)["partitions"]) == 12


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (PLACE, {}),
        (PLACE, {"NO_COLOR": "1"}),
        (PLACE, {"TERM": "dumb"}),
        (("--help",), {}),
        (("place", "--nonesuch"), {}),
    ],
)
def test_pipe_gets_no_colours(spawn, arguments, environment) -> None:
    done = spawn(*arguments, **environment)
    assert "\x1b" not in done.stdout + done.stderr


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Return a function that runs the program on a terminal and returns its output."""
    pty = pytest.importorskip("pty")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        stdout=follower,
        stderr=follower,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
    ) as program:
        os.close(follower)
        printed = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            printed += piece
        os.close(leader)
        program.wait()
    return printed.decode()


@pytest.mark.parametrize("arguments", [PLACE, ("place", "--help"), ("place", "--brokers", "x")])
def test_terminal_gets_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch, arguments) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in on_a_terminal(*arguments)
    quiet = on_a_terminal(*arguments, NO_COLOR="1")
    assert "\x1b[3" not in quiet
    assert "broker" in quiet


def test_marks_are_ascii_without_utf8(spawn) -> None:
    done = spawn(*PLACE, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "# o o" in done.stdout


@pytest.mark.parametrize(
    "arguments", [(*PLACE[:3], "-p", "20000", "-r", "3", "--rows", "0"), PLACE, ("place", "--help")]
)
def test_closed_pipe_ends_the_program_silently(arguments) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen([*PROGRAM, *arguments], stdout=writing, stderr=subprocess.PIPE) as program:
        os.close(writing)
        assert program.stderr is not None
        assert program.stderr.read() == b""
        assert program.wait() in (1, 141)


WAITING = """
import signal, sys, time, types
from restow.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it

def wait(_size):
    print("up", file=sys.stderr, flush=True)
    while True:
        time.sleep(0.1)

sys.stdin = types.SimpleNamespace(buffer=types.SimpleNamespace(read=wait))
main()
"""


def test_interrupt_exits_with_code_130() -> None:
    """The signal comes while the program waits for standard input."""
    command = [sys.executable, "-c", WAITING, "place", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == b"up\n"
        program.send_signal(signal.SIGINT)
        printed, errors = program.communicate()
    assert program.returncode == 130
    assert printed == b""
    assert b"Traceback" not in errors


WATCHING_TWICE_STOPPED = """
import asyncio, os, signal
from restow.cli.runs.watch import _watch
from restow.execute.progress import watch
from restow.execute.run import start

async def look(world, every_s):
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    yield

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
watch.watch, start.run_context = look, lambda admin, journal: None
asyncio.run(_watch(None, None, 1.0, keep_on=True, as_json=True))
"""


def test_second_interrupt_ends_watch_while_the_first_is_still_obeyed() -> None:
    command = [sys.executable, "-c", WATCHING_TWICE_STOPPED]
    ended = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def test_run_returns_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert run(["place", "--brokers", "x"]) == 2
    assert run(["nonesuch"]) == 2
    assert "Error" in capsys.readouterr().err


def test_completion_offers_commands_and_assignors(spawn) -> None:
    done = spawn(
        _RESTOW_COMPLETE="complete_bash", COMP_WORDS="restow groups assign --assignor coop", COMP_CWORD="4"
    )
    assert done.stdout.split() == ["cooperative-sticky"]


def test_app_has_a_name() -> None:
    assert app.info.name == "restow"
