"""Rehearse plans: how long they take and what they cost, before anything is touched.

    told = restow.rehearse(plan, snapshot, throttle="50MB/s")
    print(told.seconds.p50, told.problems)

The executor's own modules run in virtual time, on a cluster of numbers.
"""

from typing import TYPE_CHECKING

from restow._stages import late, make_callable

if TYPE_CHECKING:
    from restow.execute.predict.prediction import TimeRange
    from restow.rehearse.answer import CannotRehearse, Rehearsal
    from restow.rehearse.rehearsing import rehearse

__all__ = ["CannotRehearse", "Rehearsal", "TimeRange", "rehearse"]
if not TYPE_CHECKING:  # it needs the executor and the simulator, which take a while to import
    __getattr__ = late(
        __name__,
        {"rehearse": f"{__name__}.rehearsing"}
        | dict.fromkeys(("CannotRehearse", "Rehearsal"), f"{__name__}.answer")
        | {"TimeRange": "restow.execute.predict.prediction"},
    )
make_callable(__name__)
