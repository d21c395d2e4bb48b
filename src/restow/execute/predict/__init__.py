"""Predict how long a run takes: the executor's schedule in the flow model, with constants of earlier runs."""
