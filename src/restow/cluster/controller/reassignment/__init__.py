"""Reassignments: the checks, the steps, and the writes."""
