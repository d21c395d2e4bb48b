"""The command line. `main` is the program; `run` is the same for a caller that wants the exit code."""

from restow.cli.app import app, main, run

__all__ = ["app", "main", "run"]
