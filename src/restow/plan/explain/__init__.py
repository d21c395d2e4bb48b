"""Explain to its readers what a plan does, and why."""
