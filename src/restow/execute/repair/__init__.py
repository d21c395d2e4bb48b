"""Undo a run, cancel its moves, and find and fix leftovers."""
