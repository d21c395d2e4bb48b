"""Undo a run, cancel its moves, find and mend what is out of order."""
