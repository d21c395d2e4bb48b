"""Execute plans on a cluster, with a journal that makes every run resumable and undoable.

    with restow.connect("localhost:9092") as cluster:
        run = cluster.execute(plan, throttle="50MB/s")

`cluster` calls these functions. They are coroutines, for programs with an event loop of their own.
"""

from typing import TYPE_CHECKING

from restow._stages import late, make_callable

if TYPE_CHECKING:
    from restow.execute.progress.outcome import Ending, RunOutcome, Summary
    from restow.execute.progress.status import RunEvent, RunStatus
    from restow.execute.run.options import RunFlags
    from restow.execute.run.start import NotNow
    from restow.execute.running import cancel, check, execute, resume, status, undo

__all__ = [
    "Ending",
    "NotNow",
    "RunEvent",
    "RunFlags",
    "RunOutcome",
    "RunStatus",
    "Summary",
    "cancel",
    "check",
    "execute",
    "resume",
    "status",
    "undo",
]
if not TYPE_CHECKING:  # a run needs the client, which takes a while to import
    __getattr__ = late(
        __name__,
        dict.fromkeys(__all__, f"{__name__}.running")
        | dict.fromkeys(("Ending", "RunOutcome", "Summary"), f"{__name__}.progress.outcome")
        | {"NotNow": f"{__name__}.run.start"},
    )
make_callable(__name__)
