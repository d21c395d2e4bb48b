"""What Restow does, on a cluster of its own.

    python scripts/demo.py                     the whole story, in under three minutes
    python scripts/demo.py --keep              and leave the cluster up to play with, until ctrl-C
    python scripts/demo.py --report FILE       where the report goes; build/demo-report.html if not given
    python scripts/demo.py --scenes [NAME…]    small scenes instead: placement, groups, a first cluster
    python scripts/demo.py --list              the names of those scenes

The last line of the story is for machines. The exit code is 0 only if all of it held.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from restow.cli.shared.frame import NOBODY_READS, let_go_of_stdout

REPORT = Path(__file__).parents[1] / "build" / "demo-report.html"


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description="What Restow does, on a cluster of its own.")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up until ctrl-C")
    parser.add_argument("--report", type=Path, default=REPORT, metavar="FILE", help="where the report goes")
    parser.add_argument("--list", action="store_true", help="the names of the small scenes")
    parser.add_argument("--scenes", nargs="*", metavar="NAME", help="play small scenes, all or these")
    wanted = parser.parse_args()
    if wanted.list or wanted.scenes is not None:
        from demo_scenes import names, tell_all

        if wanted.list:
            print(names())
        else:
            tell_all(wanted.scenes)
        return 0
    from demo_story import Story

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    return Story(report=wanted.report.absolute(), keep=wanted.keep).play()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        let_go_of_stdout()
        sys.exit(NOBODY_READS)
