"""What Restow offers to Python: documented, typed, loaded late."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import restow

ROOT = Path(__file__).parents[2]
PUBLIC = (
    "restow",
    "restow.assignors",
    "restow.cluster",
    "restow.execute",
    "restow.pipeline",
    "restow.placement",
    "restow.plan",
    "restow.snapshot",
    "restow.verify",
)
STAGES = ("execute", "pipeline", "plan", "snapshot", "verify")
TYPED = """
import restow
from restow.plan import Move, Plan

def use(cluster: restow.Cluster) -> tuple[Move, ...]:
    plan: Plan = restow.plan(cluster.snapshot(), drain=[3], balance=True, load="load.json")
    run = cluster.execute(plan, throttle="50MB/s", on_event=lambda event: print(event.kind))
    reveal_type(restow.verify(plan, cluster.snapshot()).holds)
    reveal_type(cluster.undo(run).is_good)
    return plan.moves

def misuse(cluster: restow.Cluster) -> None:
    restow.plan(cluster.snapshot(), drian=[3])
    cluster.execute(restow.plan(cluster.snapshot()), throttle="none", hour="22-06")
    restow.plam
"""


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_name_is_in_the_api_document(package: str) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    documented = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert set(importlib.import_module(package).__all__) - documented == set()


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_function_and_class_has_a_docstring(package: str) -> None:
    module = importlib.import_module(package)
    offered = {name: getattr(module, name) for name in module.__all__}
    callables = [name for name, each in offered.items() if inspect.isroutine(each) or inspect.isclass(each)]
    assert [name for name in callables if not inspect.getdoc(offered[name])] == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_a_package_and_calls_its_function(stage: str) -> None:
    package = getattr(restow, stage)
    assert inspect.ismodule(package)
    assert inspect.signature(package) == inspect.signature(getattr(package, stage))
    with pytest.raises(TypeError, match=rf"{stage}\(\)"):
        package()


def test_submodules_of_a_stage_stay_importable() -> None:
    code = "import restow.plan.pin; print(restow.plan.pin.__name__, callable(restow.plan))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "restow.plan.pin True\n"


def test_import_restow_loads_nothing_slow() -> None:
    code = "import restow, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(("numpy", "rich", "yaml", "kafka", "pyspark", "asyncio"))


def test_type_checkers_see_the_functions(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", str(example)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line.partition("example.py:")[2] for line in done.stdout.splitlines() if "example.py:" in line]
    kinds = [(int(line.split(":")[0]), re.sub(r".*?(error|note): ", "", line)) for line in told]
    revealed = [text for _, text in kinds if "Revealed" in text]
    assert revealed == ['Revealed type is "bool"', 'Revealed type is "bool"'], done.stdout
    wrong = sorted({number for number, text in kinds if "Revealed" not in text})
    assert [TYPED.splitlines()[number - 1].strip().partition("(")[0] for number in wrong] == [
        "restow.plan",
        "cluster.execute",
        "restow.plam",
    ], done.stdout
