"""Groups of the protocol `consumer` (KIP-848): the broker assigns partitions, heartbeats do the rest."""
