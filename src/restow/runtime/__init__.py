"""Clock, chance, network and disk: what the cluster needs of the world, as protocols, and the real ones.

Nothing else in the package imports `time`, `random` or `socket`, so the same cluster can run on virtual ones.
"""
