"""Faults on the embedded cluster, for tests of Kafka clients (docs/faults.md).

    faults.py     what tests call: `cluster.faults`; threaded.py: the same for callers without a loop
    handle.py     a fault under way
    names.py      APIs, error codes and brokers by name
    requests.py   errors, delays, disconnects: handlers that stand before a broker's own
    answers.py    the response with an error in it; asked.py: what a request is about
    network.py    cut connections
    disk.py       log dirs that are full or fail; slowness.py: slow ones

Without a fault nothing stands in the way of a request. Only while they last do faults replace entries of a
broker's table of handlers, hold open connections, and change the class of open files.
"""
