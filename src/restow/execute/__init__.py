"""Carrying out plans: safely, visibly, undoably."""
