"""The command line. `main` is the program; `run` runs one command line and returns its exit code."""

from restow.cli.app import app, main, run

__all__ = ["app", "main", "run"]
