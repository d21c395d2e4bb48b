"""Damaged, hostile or foreign files beside a run: none of them ends a run with a traceback."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from restow.execute.journal.journal import FILE_NAME, DamagedJournal, Journal, UnwritableJournal
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import FindingKind, diagnose, fix
from restow.execute.run.control import BadControl, Control, ControlRequest
from restow.execute.run.lock import BadStateFolder, holder_of
from restow.execute.run.options import RunOptions
from restow.execute.run.start import NotNow, cancel, resume
from restow.runtime.disk import SystemDisk
from tests.unit.execute.stage import AWAY, THROTTLED, Stage, control_of, plan_for

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"[" * 100_000,
    b'"cancel"',
    b'{"moves_in": "x"}',
    b'{"moves_in": NaN}',
    b'{"moves_in": 1e999}',
    b'{"moves_in": -1}',
    b'{"moves_in": true}',
    b'{"moves_out": 1' + b"0" * 30 + b"}",
    b'{"moves_out": 1' + b"0" * 10_000 + b"}",
    b'{"paused": "yes"}',
    b'{"stop": ["cancel"]}',
    b'{"stop": "explode"}',
    b'{"throttle": 5}',
    b'{"throttle": "\\u001b[2J"}',
    b'{"throttle": "' + b"9" * 100_000 + b'"}',
    b'{"nonsense": 1}',
    b'{"throttle": {"throttle": NaN}}',
]


def folder_of(stage: Stage) -> Path:
    return Path(next(str(each.facts["folder"]) for each in stage.events if each.kind == "run"))


def beside(stage: Stage, make: Callable[[Path], object]) -> None:
    """Replace the control file in mid-run."""
    stage.after(3, lambda: make(folder_of(stage) / "control.json"))


def goes_on(stage: Stage) -> None:
    outcome = stage.execute(plan_for(stage, AWAY), THROTTLED)
    assert outcome.ending is Ending.DONE, outcome
    assert stage.replicas() == AWAY
    assert stage.admin.set_ == {}
    assert stage.kinds().count("control not understood") == 1


@pytest.mark.parametrize("content", HOSTILE, ids=lambda each: each[:30].decode(errors="replace"))
def test_run_continues_when_its_control_file_is_invalid(stage: Stage, content: bytes) -> None:
    beside(stage, lambda path: path.write_bytes(content))
    goes_on(stage)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_run_continues_when_its_control_file_is_no_file(stage: Stage, make: Callable[[Path], None]) -> None:
    beside(stage, make)
    goes_on(stage)


def test_run_continues_when_its_control_file_cannot_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SystemDisk.read_bytes

    def denied(self: SystemDisk, path: str) -> bytes:
        if path.endswith("control.json"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return read(self, path)

    monkeypatch.setattr(SystemDisk, "read_bytes", denied)
    beside(stage, lambda path: path.write_bytes(b"{}"))
    goes_on(stage)


def test_run_obeys_a_valid_control_file_after_an_invalid_one(stage: Stage) -> None:
    beside(stage, lambda path: path.write_bytes(b"junk"))
    stage.after(5, lambda: Path(folder_of(stage), "control.json").unlink())
    stage.after(6, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).ending is Ending.CANCELLED


def test_cancel_works_when_a_folder_is_in_the_place_of_the_control_file(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    assert stage.execute(plan_for(stage, AWAY), THROTTLED).ending is Ending.LEFT
    path = folder_of(stage) / "control.json"
    path.unlink()
    path.mkdir()
    outcome = asyncio.run(cancel(stage.world, stage.watcher))
    assert outcome is not None
    assert outcome.ending is Ending.CANCELLED
    assert stage.admin.set_ == {}


def test_request_is_refused_when_the_control_file_is_invalid(tmp_path: Path) -> None:
    (tmp_path / "control.json").write_text("junk")
    with pytest.raises(BadControl, match=r"control\.json is not JSON .* remove it"):
        Control(SystemDisk(), str(tmp_path)).request(ControlRequest(paused=True))


def forged(journal: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Rewrite a journal with valid checksums."""
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    change(entries)
    lines = []
    for entry in entries:
        body = {key: value for key, value in entry.items() if key != "crc"}
        crc = zlib.crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())
        lines.append(json.dumps({**body, "crc": crc}) + "\n")
    journal.write_text("".join(lines))


def of_kind(entries: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(each for each in entries if each["kind"] == kind)


def setting(entries: list[dict[str, Any]], key: str, value: object) -> None:
    of_kind(entries, "throttle")["changes"][0][key] = value


def in_step(entries: list[dict[str, Any]], key: str, value: object) -> None:
    of_kind(entries, "submit")["steps"][0][key] = value


SENSELESS: list[Callable[[list[dict[str, Any]]], object]] = [
    lambda e: e[0].pop("plan"),
    lambda e: e[0].update(plan=[]),
    lambda e: e[0].update(plan={"restow_plan": 2}),
    lambda e: e[0].update(topic_ids=[1]),
    lambda e: e[0].update(turn=-1),
    lambda e: e[0].update(turn=10**30),
    lambda e: e[0].update(turn="x"),
    lambda e: e[0].update(undo_of=7),
    lambda e: e[0]["plan"].update(limits={"moves_in": float("nan")}),
    lambda e: e[1].pop("at_ms"),
    lambda e: e[1].update(kind=3),
    lambda e: e[1].update(n="x"),
    lambda e: setting(e, "setting", ["broker", "1", "log.retention.ms"]),
    lambda e: setting(e, "setting", ["broker", "../x", "leader.replication.throttled.rate"]),
    lambda e: setting(e, "setting", ["topic", 5, "leader.replication.throttled.replicas"]),
    lambda e: setting(e, "setting", "broker"),
    lambda e: setting(e, "prior", 5),
    lambda e: setting(e, "value", ["x"]),
    lambda e: of_kind(e, "throttle").update(changes=None),
    lambda e: of_kind(e, "throttled").pop("arrived"),
    lambda e: of_kind(e, "throttle").update(borrowed=[["a"]]),
    lambda e: in_step(e, "partition", "t-0"),
    lambda e: in_step(e, "partition", ["t", -1]),
    lambda e: in_step(e, "after", "abc"),
    lambda e: in_step(e, "after", [1, 1]),
    lambda e: in_step(e, "after", []),
    lambda e: in_step(e, "before", [1, None]),
    lambda e: in_step(e, "size_bytes", float("inf")),
    lambda e: in_step(e, "log_dirs", [1]),
    lambda e: e[-1].update(kind="dropped", partition=["t", 0], reason=None),
    lambda e: e[-1].update(kind="cancelled", partitions=7),
    lambda e: e[-1].update(kind="ended", outcome={"x": 1}),
]


@pytest.mark.parametrize("change", SENSELESS, ids=range(len(SENSELESS)))
def test_run_is_refused_when_a_journal_has_invalid_entries(
    stage: Stage, change: Callable[[list[dict[str, Any]]], None]
) -> None:
    """The checksums are valid, but the entries are not."""
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="leave")))
    stage.execute(plan_for(stage, AWAY), THROTTLED)
    folder = folder_of(stage)
    forged(folder / FILE_NAME, change)
    runs, set_ = asyncio.run(stage.world.runs()), dict(stage.admin.set_)
    with pytest.raises(DamagedJournal):
        runs.get(folder.name)
    with pytest.raises(NotNow, match="is in the way"):
        stage.execute(plan_for(stage, []))
    for attempt in (stage.resume, stage.undo, lambda: asyncio.run(cancel(stage.world, stage.watcher))):
        with pytest.raises(DamagedJournal):
            attempt()
    assert asyncio.run(diagnose(stage.world))[0].kind is FindingKind.JOURNAL
    asyncio.run(fix(stage.world, stage.watcher))
    assert stage.admin.set_ == set_


def test_journal_that_is_a_pipe_is_damaged(stage: Stage) -> None:
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    journal = folder_of(stage) / FILE_NAME
    journal.unlink()
    os.mkfifo(journal)
    with pytest.raises(NotNow, match=r"journal\.jsonl cannot be read: it is not an ordinary file"):
        stage.execute(plan_for(stage, AWAY))


@pytest.mark.parametrize("name", ["lock", "holder.json", "identity"])
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_run_is_refused_or_continues_when_a_lock_file_is_no_file(
    stage: Stage, name: str, make: Callable[[Path], None]
) -> None:
    runs = asyncio.run(stage.world.runs())
    Path(runs.folder).mkdir(parents=True)
    make(Path(runs.folder) / name)
    try:
        assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    except BadStateFolder as error:
        assert runs.folder in str(error)  # noqa: PT017
    assert holder_of(stage.world.disk, runs.folder) is None


def test_run_ends_with_a_message_when_its_journal_cannot_be_written(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        def no_room(self: object, *parts: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("restow.runtime.disk.SystemFile.append", no_room)

    stage.after(3, full)
    with pytest.raises(UnwritableJournal, match=r"No space left on device.*`restow resume`"):
        stage.execute(plan_for(stage, AWAY), THROTTLED)
    monkeypatch.undo()
    assert stage.resume(THROTTLED).is_good
    assert stage.admin.set_ == {}


def modes(root: Path) -> set[str]:
    """Return the modes under a folder that allow other users in."""
    return {
        f"{path.name} {stat.S_IMODE(path.stat().st_mode):o}"
        for path in root.rglob("*")
        if stat.S_IMODE(path.stat().st_mode) & 0o077
    }


def test_state_becomes_private_even_if_it_was_open_before(stage: Stage, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        stage.execute(plan_for(stage, [(1, 3)]))
        assert modes(tmp_path), "otherwise nothing would be seen here"
        stage.world = replace(stage.world, disk=SystemDisk(private=True))
        stage.execute(plan_for(stage, [(1, 2)]))
        stage.after(2, lambda: control_of(stage).request(ControlRequest(throttle="6MB/s")))
        stage.undo()
    finally:
        os.umask(before)
    runs = asyncio.run(stage.world.runs())
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(runs.folder).stat().st_mode) == 0o700
    for run in runs.all()[1:]:
        assert not modes(Path(run.folder)), "what the private ones have made"
        assert stat.S_IMODE(Path(run.folder).stat().st_mode) == 0o700


def test_state_folder_of_another_user_is_refused(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.world = replace(stage.world, disk=SystemDisk(private=True))
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(BadStateFolder, match=r"runs cannot be used .* belongs to another user .* --journal"):
        stage.execute(plan_for(stage, [(1, 3)]))
    assert stage.admin.calls == []


def test_state_folder_under_a_world_writable_folder_is_refused(stage: Stage, tmp_path: Path) -> None:
    open_ = tmp_path / "open"
    open_.mkdir()
    open_.chmod(0o777)
    stage.world = replace(stage.world, disk=SystemDisk(private=True), root=str(open_))
    with pytest.raises(BadStateFolder, match="anybody may change"):
        stage.execute(plan_for(stage, [(1, 3)]))
    open_.chmod(0o1777)
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good, "as /tmp is: there nobody removes others' files"


def test_newest_run_is_the_last_begun_even_if_clocks_are_set_back(stage: Stage) -> None:
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    stage.clock.now_s -= 2 * 86_400
    assert stage.execute(plan_for(stage, [(1, 3), (1, 4)])).is_good
    stage.clock.now_s -= 2 * 86_400
    runs = asyncio.run(stage.world.runs())
    assert [len(run.ledger.plan.moves) for run in runs.all()] == [1, 1]
    assert runs.names() == tuple(run.name for run in reversed(runs.all())), (
        "by their names it is the other way"
    )
    assert runs.latest() == runs.last_to_move() == runs.all()[-1]
    assert stage.undo().is_good
    assert stage.replicas()[:2] == [(1, 3), (1, 2)], "the second run is undone, and not the first"


def test_resumed_run_is_newer_than_one_that_began_meanwhile(stage: Stage) -> None:
    stage.after(2, lambda: control_of(stage).request(ControlRequest(stop="cancel")))
    stage.execute(plan_for(stage, [(1, 3)]), THROTTLED)
    first = asyncio.run(stage.world.runs()).latest().name
    assert stage.execute(plan_for(stage, [(1, 2), (1, 4)])).is_good
    stage.clock.now_s -= 86_400
    assert asyncio.run(resume(stage.world, RunOptions(), stage.watcher, first)).is_good
    assert asyncio.run(stage.world.runs()).latest().name == first


def test_journal_of_an_earlier_version_has_no_turn_and_is_the_oldest(stage: Stage) -> None:
    assert stage.execute(plan_for(stage, [(1, 3)])).is_good
    forged(folder_of(stage) / FILE_NAME, lambda entries: entries[0].pop("turn"))
    old = folder_of(stage).name
    stage.clock.now_s -= 86_400
    assert stage.execute(plan_for(stage, [(1, 3), (1, 4)])).is_good
    assert asyncio.run(stage.world.runs()).all()[0].name == old


def test_journal_is_read_as_it_was_written(stage: Stage, tmp_path: Path) -> None:
    journal = Journal(SystemDisk(private=True), stage.clock, str(tmp_path / "j"))
    journal.write("began", plan={})
    journal.close()
    assert stat.S_IMODE((tmp_path / "j" / FILE_NAME).stat().st_mode) == 0o600
