"""The order of steps: which may run at the same time, and which begins next."""
