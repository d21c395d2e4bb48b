"""Reassignments: which may begin, their steps, and what is written on the way."""
