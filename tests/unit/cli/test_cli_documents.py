"""Malformed JSON and YAML files: each error names the place and the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from restow.cli.shared.documents import read_document
from restow.errors import InvalidDocument


def complaint(path: Path) -> str:
    with pytest.raises(InvalidDocument) as caught:
        read_document(str(path))
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b"", "is empty"),
        ("a.yaml", b" \n \n", "is empty"),
        ("a.json", b'{"a": 1,}', "line 1, column 9: not valid JSON"),
        ("a.json", b'{\n "a": 1\n "b": 2}', "line 3, column 2: not valid JSON"),
        ("a.json", b'{"a": 1, "a": 2}', "'a' is there twice"),
        ("a.json", b"9" * 5000, "not valid JSON"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.yaml", b"a: [1\nb: 2\n", "line 2, column"),
        ("a.yaml", b"a: 1\na: 2\n", "line 2, column 1: not valid YAML: the key 'a' is there twice"),
        ("a.yaml", b"a: \tb: c: d", "not valid YAML"),
        ("a.yaml", b"a: !!python/object/apply:os.getcwd []", "not valid YAML"),
        ("a.yaml", b"--- 1\n--- 2\n", "not valid YAML"),
        ("a.yaml", b"a: *nobody", "not valid YAML"),
        ("a.yaml", b"a: 2024-13-45", "not valid YAML"),
        ("a.yaml", b"\x7fELF\x00\x01", "binary"),
        ("a.json", b"\xff\xfe{}", "not UTF-8"),
    ],
)
def test_read_document_refuses_broken_files(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    message = complaint(file)
    assert says in message
    assert name in message
    assert "\n" not in message


def test_read_document_refuses_missing_files_and_folders(tmp_path: Path) -> None:
    assert "does not exist" in complaint(tmp_path / "missing.yaml")
    assert "is a directory" in complaint(tmp_path)
    assert "cannot be read" in complaint(tmp_path / ("x" * 5000))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_read_document_refuses_a_file_without_permission(tmp_path: Path) -> None:
    file = tmp_path / "secret.yaml"
    file.write_text("a: 1")
    file.chmod(0)
    assert "may not be read" in complaint(file)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless file here")
def test_read_document_refuses_an_endless_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("restow.cli.shared.documents.MAX_FILE_BYTES", 1024**2)
    assert "larger than 1 MiB" in complaint(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"a": [1, "x"]}'),
        ("a.json", '\ufeff{"a": [1, "x"]}'),
        ("a.yaml", "a: [1, x]"),
        ("a.yml", '{"a": [1, "x"]}'),
        ("json-without-a-suffix", '  {"a": [1, "x"]}'),
        ("yaml-without-a-suffix", "a:\n- 1\n- x\n"),
        ("merged.yaml", "a: &x [1, x]\n"),
    ],
)
def test_read_document_reads_json_and_yaml(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    assert read_document(str(file)).value == {"a": [1, "x"]}


def test_document_node_names_its_place_in_errors(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("members: [{id: x}, {id: 7}]")
    node = read_document(str(file)).mapping()["members"].items()[1].mapping()["id"]
    with pytest.raises(
        InvalidDocument, match=r"a\.yaml, members\[1\]\.id: expected a string, found a number"
    ):
        node.text()
