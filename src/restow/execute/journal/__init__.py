"""The journal of a run: every change is written down before it is made."""
