"""Plans for random clusters and requests: no rule is broken, and no proven bound is above the optimum.

`make test` looks at a few hundred of them, `make test-full` at ten thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from restow.errors import InvalidInput
from restow.plan.judge import whole
from restow.plan.judge.bound import HOW_ALONE, HOW_TOGETHER
from restow.plan.judge.evaluate import evaluate
from restow.plan.judge.waves import waves_broken
from restow.plan.judge.whole import HOW_WHOLE
from restow.plan.propose import propose
from restow.plan.request.framing import ask
from tests.often import often
from tests.seeds import seeded

from least import least_bytes_of_any_plan  # isort: skip
from random_cases import draw  # isort: skip

if TYPE_CHECKING:
    from restow.plan.judge.evaluate import Judgement
    from restow.plan.request.framing import Asked

CHUNK = 250
NEAR = 1 + 1e-6


def is_in_band(asked: Asked, judged: Judgement) -> bool:
    """Return whether every broker is in every band by the judge's loads, and no topic crowds one."""
    for column, goal in enumerate(asked.goals):
        after, unit = (
            judged.scores[goal.name].after,
            float(asked.problem.leading[:, column].max(initial=1e-9)),
        )
        for number, broker in enumerate(asked.arrays.brokers):
            load, slack = after.get(broker, 0.0), unit * 1e-7
            low, high = asked.problem.lower[number, column], asked.problem.upper[number, column]
            if not low - slack <= load <= high + slack:
                return False
    return not asked.request.spread_topics or judged.crowded["topic_replicas"][1] == 0


@pytest.mark.parametrize("chunk", often(range(40), 0))
def test_plan_breaks_no_rule_and_its_bound_is_not_above_the_optimum(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    over: list[float] = []
    proofs: dict[str, int] = dict.fromkeys((HOW_ALONE, HOW_TOGETHER, HOW_WHOLE), 0)
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        seed = seeded(number)
        case = draw(seed)
        monkeypatch.setattr(whole, "_SOLVES", number % 4 != 0)
        try:
            asked = ask(*case)
            plan = propose(*case, asked=asked)
        except InvalidInput:
            continue
        judged = evaluate(case.snapshot, case.load, plan.moves, case.request)
        assert not judged.violations, f"case {seed}"
        assert not list(waves_broken(case.snapshot, plan)), f"case {seed}"
        if not plan.bound_bytes:
            continue
        best = least_bytes_of_any_plan(case, asked)
        assert plan.bound_bytes <= best.found * NEAR + 1, f"case {seed}: {plan.bound_by}"
        proofs[plan.bound_by] += np.isfinite(best.found)
        if is_in_band(asked, judged):
            copied = sum(move.size_bytes * len(move.adding) for move in plan.moves)
            assert copied >= best.proven / NEAR - 1, f"case {seed}: no plan should copy so little"
            over.append(copied / best.found)
    assert len(over) >= CHUNK / 8
    assert sum(many > 0 for many in proofs.values()) >= 2, proofs
    assert np.median(over) <= 1.001
