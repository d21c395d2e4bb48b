"""Plugin assignors: registered in code, found through entry points, and checked."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from restow.assignors import Assignor, Member, TopicPartition, assign, get, names, register
from restow.assignors import registry as registry_module
from restow.errors import AssignorFailed, InvalidInput, UnknownAssignor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

T0, T1 = (TopicPartition("t", p) for p in range(2))
MEMBERS = (Member(id="a", topics=("t",)), Member(id="b", topics=("t", "u")))
COUNTS = {"t": 2, "u": 1}
OWN = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "rack-uniform", "lag-aware")


@pytest.fixture(autouse=True)
def known_assignors() -> Iterator[None]:
    """Forget registrations after each test."""
    before = dict(registry_module._known)
    yield
    registry_module._known.clear()
    registry_module._known.update(before)


class FirstTakesAll(Assignor):
    """Gives everything to the first subscriber."""

    name = "first-takes-all"

    def assign(self, partitions: Any, members: Any, partition_racks: Any = None) -> Any:
        given: dict[str, list[TopicPartition]] = {member.id: [] for member in members}
        for topic, count in partitions.items():
            for member in members:
                if topic in member.topics:
                    given[member.id] += [TopicPartition(topic, p) for p in range(count)]
                    break
        return given


def answering(answer: Any) -> Assignor:
    """Return an assignor that always gives this answer."""

    class Parrot(Assignor):
        name = "parrot"

        def assign(self, partitions: Any, members: Any, partition_racks: Any = None) -> Any:
            return answer

    return Parrot()


@pytest.mark.parametrize("what", [FirstTakesAll, FirstTakesAll()], ids=["class", "instance"])
def test_registered_assignor_is_used(what: Any) -> None:
    register(what)
    assert "first-takes-all" in names()
    assert isinstance(get("first-takes-all"), FirstTakesAll)
    assert assign("first-takes-all", COUNTS, MEMBERS) == {"a": [T0, T1], "b": [TopicPartition("u", 0)]}


def test_own_assignors_are_listed_first() -> None:
    register(FirstTakesAll)
    assert names()[: len(OWN)] == OWN


def test_later_assignor_of_the_same_name_replaces_the_first() -> None:
    class Mine(FirstTakesAll):
        name = "range"

    register(Mine)
    assert assign("range", {"t": 2}, MEMBERS) == {"a": [T0, T1], "b": []}
    assert names().count("range") == 1


class Nameless(FirstTakesAll):
    name = None  # type: ignore[assignment]


class Unfinished(Assignor):
    name = "unfinished"


class Clumsy(FirstTakesAll):
    name = "clumsy"

    def __init__(self) -> None:
        raise RuntimeError("no configuration")


@pytest.mark.parametrize(
    "what", [None, "range", object(), object, dict, Nameless, Nameless(), Unfinished, Clumsy]
)
def test_register_refuses_other_objects(what: Any) -> None:
    with pytest.raises(AssignorFailed):
        register(what)
    assert names() == OWN


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({}, "exactly the members"),
        ({"a": [T0, T1]}, r"exactly the members.*'b'"),
        ({"a": [T0], "b": [T1], "c": []}, r"exactly the members.*'c'"),
        ({"a": [T0], "b": [T0]}, "t-0 to both 'a' and 'b'"),
        ({"a": [T0, T0], "b": []}, "t-0"),
        ({"a": [TopicPartition("t", 2)], "b": []}, "t-2 to 'a'"),
        ({"a": [TopicPartition("t", -1)], "b": []}, "t--1 to 'a'"),
        ({"a": [TopicPartition("u", 0)], "b": []}, "u-0 to 'a'"),
        ({"a": [], "b": [TopicPartition("gone", 0)]}, "gone-0 to 'b'"),
        (None, "parrot"),
        ([], "parrot"),
        ("nonsense", "parrot"),
        ({"a": None, "b": []}, "parrot"),
        ({"a": 5, "b": []}, "parrot"),
        ({"a": ["t-0"], "b": []}, "parrot"),
        ({"a": [None], "b": []}, "parrot"),
        ({"a": [("t",)], "b": []}, "parrot"),
        ({"a": [("t", "0")], "b": []}, "parrot"),
        ({"a": [["t", 0]], "b": []}, "parrot"),
        ({"a": [("t", 0.5)], "b": []}, "parrot"),
    ],
)
def test_invalid_answer_is_refused(answer: Any, complaint: str) -> None:
    register(answering(answer))
    with pytest.raises(AssignorFailed, match=complaint):
        assign("parrot", COUNTS, MEMBERS)


@pytest.mark.parametrize(
    "answer", [{"a": [], "b": []}, {"b": [T0], "a": [T1]}, {"a": [("t", 0)], "b": [("u", 0)]}]
)
def test_answer_may_leave_partitions_out(answer: Any) -> None:
    """A cooperative assignor must be able to; so no answer has to be complete."""
    register(answering(answer))
    assert assign("parrot", COUNTS, MEMBERS) == answer


def test_bad_input_is_refused_before_the_plugin_is_called() -> None:
    register(answering(None))
    with pytest.raises(InvalidInput):
        assign("parrot", {"t": -1}, MEMBERS)


PACKAGE = """
from restow.assignors import Assignor

class Plugged(Assignor):
    name = "plugged"

    def assign(self, partitions, members, partition_racks=None):
        return {member.id: [] for member in members}

class Misnamed(Plugged):
    name = "range"

class Clumsy(Plugged):
    def __init__(self):
        raise RuntimeError("no configuration")

ready = Plugged()
number = 5
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that installs a distribution with these entry points."""

    def install(entry_points: str) -> None:
        (tmp_path / "strangers_assignors.py").write_text(PACKAGE)
        info = tmp_path / "strangers-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[restow.assignors]\n{entry_points}\n")
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("strangers_assignors", None)


@pytest.mark.parametrize("attribute", ["Plugged", "ready"])
def test_entry_point_is_found(install: Callable[[str], None], attribute: str) -> None:
    install(f"plugged = strangers_assignors:{attribute}")
    assert names() == (*OWN, "plugged")
    assert "strangers_assignors" not in sys.modules
    assert assign("plugged", COUNTS, MEMBERS) == {"a": [], "b": []}
    assert get("plugged") is get("plugged")
    assert names().count("plugged") == 1


@pytest.mark.parametrize(
    "where",
    [
        "not_there_at_all:Plugged",
        "strangers_assignors:Absent",
        "strangers_assignors:Clumsy",
        "strangers_assignors:number",
        "strangers_assignors",
        "strangers_assignors:Misnamed",
    ],
)
def test_broken_entry_point_breaks_only_itself(install: Callable[[str], None], where: str) -> None:
    install(f"plugged = {where}")
    ranges = get("range")
    with pytest.raises(AssignorFailed, match="plugged"):
        get("plugged")
    assert get("range") is ranges
    assert "plugged" in names()
    with pytest.raises(UnknownAssignor, match="plugged"):
        get("absent")


def test_entry_point_does_not_replace_our_own_assignor(install: Callable[[str], None]) -> None:
    install("range = strangers_assignors:Misnamed")
    ours = get("range")
    assert type(ours).__module__ == "restow.assignors.range"
    assert names() == OWN
