"""The commands that execute plans, control runs and verify the result."""
