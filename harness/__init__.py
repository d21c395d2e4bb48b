"""Apache Kafka for tests and benchmarks: its jars, its classes in a JVM, its tools, and real brokers.

Nothing here is part of the installed package. The jars are fetched once, by the Ivy inside the
pyspark wheel, into the user's cache; everything else runs on the loopback interface only.

    cache.py    where downloads are kept between runs
    jars.py     kafka_jars(version) -> the folder with the jars; spark_kafka_jars(): of Spark's connector
    tools.py    Tools(version).run("kafka-topics", …) -> what that command line tool printed
    jvm.py      kafka_jvm(version)  -> a gateway to a JVM that has them on its class path
    oracle.py   what Kafka's own placement and assignors answer
    kcat.py     kcat(…) -> what the Debian package of that client printed
    spark.py    spark_session(folder) -> a local Spark that can talk to Kafka
    apache.py   apache_kafka(folder) -> a running cluster
    zookeeper.py  zookeeper(folder) -> a running ZooKeeper, for the store and for older clusters
    brokers.py  broker_processes(folder) -> brokers of ours, one process each, on a ZooKeeper
    process.py  what both of them start and end processes with
"""

from harness.java import HarnessError, Missing

__all__ = ["HarnessError", "Missing"]
