"""Virtual time: brokers, clients and the executor in one deterministic simulation."""
