"""docs/unsupported.md agrees with the registered handlers."""

from __future__ import annotations

import re
from pathlib import Path

from restow.cluster.handlers import HANDLERS, served_versions
from restow.wire.messages import REQUESTS

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| (\w+) \| (\d+|\d+–\d+|–) \|(.*)\|$", re.MULTILINE)


def rows() -> dict[int, tuple[str, str, str]]:
    found = ROW.findall((ROOT / "docs" / "unsupported.md").read_text())
    listed = {int(key): (name, versions, missing.strip()) for key, name, versions, missing in found}
    assert len(listed) == len(found), "a key is listed twice"
    return listed


def written(versions: range) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}–{versions[-1]}"


def test_every_request_is_listed_under_its_name() -> None:
    names = {key: request.__name__.removesuffix("Request") for key, request in REQUESTS.items()}
    assert {key: name for key, (name, _, _) in rows().items()} == names


def test_listed_versions_equal_those_registered() -> None:
    served = {key: written(versions) for key, versions in served_versions().items()}
    listed = {key: versions for key, (_, versions, _) in rows().items()}
    assert listed == {key: served.get(key, "–") for key in listed}
    assert served.keys() <= listed.keys()


def test_unsupported_requests_are_not_registered() -> None:
    absent = {key for key, (_, versions, _) in rows().items() if versions == "–"}
    assert absent
    assert absent.isdisjoint(HANDLERS)


def test_handler_file_is_named_for_its_key_and_has_a_docstring() -> None:
    folder = ROOT / "src" / "restow" / "cluster" / "handlers"
    files = {int(path.name[1:3]): path for path in folder.glob("k[0-9][0-9]_*.py")}
    assert files.keys() == HANDLERS.keys()
    for key, path in files.items():
        words = re.findall("[A-Z][a-z]*", REQUESTS[key].__name__.removesuffix("Request"))
        assert path.stem == "_".join([f"k{key:02}", *(word.lower() for word in words)])
        assert (HANDLERS[key].handle.__module__).endswith(path.stem)
