"""Plan files: Restow's own format, Kafka's JSON, digests and signatures."""
