"""The simulated disk: what survives a process crash, and what a power loss."""

from __future__ import annotations

import errno

import pytest

from restow.runtime.chance import SeededChance
from restow.sim.disk import SimDisk


def disk_with_a_file(seed: int = 0) -> SimDisk:
    disk = SimDisk(SeededChance(seed))
    disk.volume("/data/log")
    disk.make_directory("/data/log")
    file = disk.open("/data/log/0.log", create=True)
    file.append(b"synced")
    file.sync()
    file.append(b" and not")
    return disk


def test_kill_keeps_written_data_and_voids_handles() -> None:
    disk = disk_with_a_file()
    file = disk.open("/data/log/0.log")
    disk.kill()
    with pytest.raises(OSError, match="process") as caught:
        file.append(b"!")
    assert caught.value.errno == errno.EBADF
    assert disk.read_bytes("/data/log/0.log") == b"synced and not"


def test_power_loss_keeps_synced_data_and_a_part_of_the_rest() -> None:
    found = set()
    for seed in range(200):
        disk = disk_with_a_file(seed)
        disk.lose_power()
        data = disk.read_bytes("/data/log/0.log")
        assert data.startswith(b"synced")
        found.add(data)
    assert b"synced" in found
    assert b"synced and not" in found
    assert any(data.endswith(b"\0") for data in found)


def test_durably_replaced_file_survives_a_power_loss() -> None:
    for seed in range(20):
        disk = SimDisk(SeededChance(seed))
        disk.make_directory("/a")
        disk.write_atomically("/a/meta", b"old")
        disk.write_atomically("/a/meta", b"new")
        disk.lose_power()
        assert disk.read_bytes("/a/meta") == b"new"


def test_full_volume_refuses_to_grow_and_others_do_not() -> None:
    disk = SimDisk(SeededChance(0))
    disk.volume("/small").total_bytes = 10
    disk.make_directory("/small")
    disk.make_directory("/large")
    disk.open("/small/a", create=True).append(b"12345678")
    with pytest.raises(OSError, match="space") as caught:
        disk.open("/small/a").append(b"9ab")
    assert caught.value.errno == errno.ENOSPC
    disk.open("/large/a", create=True).append(b"x" * 100)
    assert disk.space("/small") == (10, 2)


def test_failed_volume_fails_every_call() -> None:
    disk = disk_with_a_file()
    file = disk.open("/data/log/0.log")
    disk.volume("/data/log").error = errno.EIO
    for call in (lambda: file.read(0, 1), lambda: disk.list("/data/log"), lambda: disk.exists("/data/log")):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EIO


def test_slow_volume_says_how_long_each_call_took() -> None:
    disk = disk_with_a_file()
    took: list[float] = []
    disk.took = took.append
    disk.volume("/data/log").slow_s = 0.02
    disk.open("/data/log/0.log").append(b"x")
    assert took == [0.02, 0.02]


def test_checker_reads_from_a_failed_volume_without_an_error() -> None:
    disk = disk_with_a_file()
    file = disk.open("/data/log/0.log")
    disk.volume("/data/log").error = errno.EIO
    disk.is_looked_at = True
    assert file.read(0, 6) == b"synced"
    disk.is_looked_at = False
    with pytest.raises(OSError, match="Input/output"):
        file.read(0, 6)


def test_power_loss_forgets_the_files_that_were_made_last() -> None:
    left = set()
    for seed in range(50):
        disk = SimDisk(SeededChance(seed))
        disk.make_directory("/a")
        disk.open("/a/1", create=True).sync()
        disk.open("/a/2", create=True).append(b"x")
        disk.open("/a/3", create=True).append(b"x")
        disk.lose_power()
        left.add(disk.list("/a"))
    assert left == {("1",), ("1", "2"), ("1", "2", "3")}


def test_directories_are_renamed_with_their_content() -> None:
    disk = disk_with_a_file()
    disk.rename("/data/log", "/data/gone")
    assert disk.list("/data") == ("gone",)
    assert disk.read_bytes("/data/gone/0.log") == b"synced and not"
    disk.remove_tree("/data/gone")
    assert disk.list("/data") == ()
