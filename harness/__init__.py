"""Apache Kafka for tests and benchmarks: its jars, its classes in a JVM, its tools, and real brokers.

Nothing here is part of the installed package. The jars are fetched once, by the Ivy inside the pyspark wheel,
into the user's cache; everything else runs on loopback only.

    cache.py    the cache of downloads
    jars.py     kafka_jars(version) -> the folder with the jars; spark_kafka_jars() -> Spark's connector
    tools.py    Tools(version).run("kafka-topics", …) -> the output of that command line tool
    jvm.py      kafka_jvm(version)  -> a gateway to a JVM with the jars on its class path
    oracle.py   results of Kafka's own placement and assignors
    debian.py   unpacked(package) -> the folder of a Debian package, unpacked but not installed
    chromium.py browser()           -> Chromium from the Debian package, driven by Playwright
    kcat.py     kcat(…) -> the output of that client, from the Debian package
    spark.py    spark_session(folder) -> a local Spark that can talk to Kafka
    apache.py   apache_kafka(folder) -> a running cluster
    zookeeper.py  zookeeper(folder) -> a running ZooKeeper, for the store and for older clusters
    brokers.py  broker_processes(folder) -> Restow brokers, one process each, on a ZooKeeper
    process.py  starts and ends processes
"""

from harness.java import HarnessError, Missing

__all__ = ["HarnessError", "Missing"]
