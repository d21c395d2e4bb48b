"""Clock, chance, network and disk: protocols for the cluster's environment, and the real implementations.

Nothing else in the package imports `time`, `random` or `socket`, so the same cluster can run on virtual ones.
"""
