"""The journal of a run: what is written down before every change."""
