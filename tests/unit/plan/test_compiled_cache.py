"""The cache of compiled loops, after the sources have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.search import compiled

if TYPE_CHECKING:
    from pathlib import Path


def test_cache_is_emptied_when_the_sources_changed_and_kept_otherwise(tmp_path: Path) -> None:
    drop = compiled._drop_stale_cache.__wrapped__
    code = [tmp_path / "deal.take-4.py311.nbi", tmp_path / "deal.take-4.py311.1.nbc"]
    for each in code:
        each.write_bytes(b"of an older version")
    other = tmp_path / "deal.cpython-311.pyc"
    other.touch()
    drop(str(tmp_path))
    assert not any(each.exists() for each in code)
    assert other.exists()
    code[0].touch()
    drop(str(tmp_path))
    assert code[0].exists()
    stamp = next(each for each in tmp_path.iterdir() if each not in (*code, other))
    stamp.write_text("other sources")
    drop(str(tmp_path))
    assert not code[0].exists()


def test_cache_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    compiled._drop_stale_cache.__wrapped__(str(tmp_path / "file" / "cache"))
