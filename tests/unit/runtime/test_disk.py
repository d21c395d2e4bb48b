"""The real disk: data is read back, also when files are closed in between."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from pathlib import Path


def test_append_returns_the_position_of_its_parts(tmp_path: Path) -> None:
    file = SystemDisk().open(str(tmp_path / "f"), create=True)
    assert file.append(b"ab", memoryview(b"cd"), bytearray(b"e")) == 0
    assert file.append(b"fg") == 5
    assert file.size == 7
    assert file.read(1, 4) == b"bcde"
    assert file.read(5, 100) == b"fg"
    file.close()


def test_append_writes_more_parts_than_one_call_takes(tmp_path: Path) -> None:
    file = SystemDisk().open(str(tmp_path / "f"), create=True)
    parts = [bytes([i % 256]) * 3 for i in range(3000)]
    file.append(*parts)
    assert file.read(0, 10_000) == b"".join(parts)
    assert file.size == 9000
    file.close()


def test_truncated_file_continues_at_its_new_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    file = SystemDisk().open(str(path), create=True)
    file.append(b"abcdef")
    file.truncate(2)
    assert file.append(b"xy") == 2
    file.sync()
    file.close()
    assert path.read_bytes() == b"abxy"
    again = SystemDisk().open(str(path))
    assert again.size == 4
    again.close()


def test_open_does_not_create_a_missing_file_unasked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        SystemDisk().open(str(tmp_path / "f"))


def test_open_files_are_limited_and_all_are_usable(tmp_path: Path) -> None:
    disk = SystemDisk(most_open_files=3)
    files = [disk.open(str(tmp_path / str(i)), create=True) for i in range(10)]
    for turn in range(3):
        for i, file in enumerate(files):
            file.append(f"{i}.{turn} ".encode())
            assert sum(each._descriptor >= 0 for each in files) <= 3
    for i, file in enumerate(files):
        assert file.read(0, 100) == f"{i}.0 {i}.1 {i}.2 ".encode()
        file.close()
    assert all(each._descriptor < 0 for each in files)
    assert not disk._opened


def test_recently_used_files_stay_open(tmp_path: Path) -> None:
    disk = SystemDisk(most_open_files=2)
    used = disk.open(str(tmp_path / "used"), create=True)
    idle = disk.open(str(tmp_path / "idle"), create=True)
    used.append(b"x")
    third = disk.open(str(tmp_path / "third"), create=True)
    assert used._descriptor >= 0
    assert idle._descriptor < 0
    for file in (used, idle, third):
        file.close()


def test_limit_of_open_files_must_be_positive() -> None:
    with pytest.raises(ValueError, match="most_open_files"):
        SystemDisk(most_open_files=0)


@pytest.mark.parametrize("durable", [True, False])
def test_write_atomically_replaces_small_files(tmp_path: Path, durable: bool) -> None:
    disk = SystemDisk()
    path = str(tmp_path / "c")
    disk.write_atomically(path, b"one", durable=durable)
    disk.write_atomically(path, b"two", durable=durable)
    assert disk.read_bytes(path) == b"two"
    assert disk.list(str(tmp_path)) == ("c",)


def test_directories_are_made_listed_renamed_and_removed(tmp_path: Path) -> None:
    disk = SystemDisk()
    folder = f"{tmp_path}/a/b"
    disk.make_directory(folder)
    disk.make_directory(folder)
    disk.write_atomically(f"{folder}/z", b"")
    disk.write_atomically(f"{folder}/y", b"")
    assert disk.list(folder) == ("y", "z")
    disk.rename(f"{tmp_path}/a", f"{tmp_path}/c")
    assert not disk.exists(folder)
    disk.remove(f"{tmp_path}/c/b/y")
    assert disk.list(f"{tmp_path}/c/b") == ("z",)
    disk.remove_tree(f"{tmp_path}/c")
    assert disk.list(str(tmp_path)) == ()
    total, free = disk.space(str(tmp_path))
    assert 0 < free <= total


def test_lock_is_exclusive_until_released(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    held = SystemDisk().lock(path)
    assert held is not None
    assert SystemDisk().lock(path) is None
    held.release()
    held.release()
    again = SystemDisk().lock(path)
    assert again is not None
    again.release()


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    program = (
        "import sys; from restow.runtime.disk import SystemDisk; "
        "held = SystemDisk().lock(sys.argv[1]); print(held is not None, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        assert SystemDisk().lock(path) is None
        holder.kill()
        holder.wait()
        found = SystemDisk().lock(path)
    assert found is not None
    found.release()
